// SPDX-License-Identifier: BSD-3-Clause
/* Loads a part of a program, and with it its MPI, for itself alone, as Python does.
 *
 *   preload_private PART FILE
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* part = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (part == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*run)(int, char**) = (int (*)(int, char**))dlsym(part, "main");
  return run == NULL ? 1 : run(argc - 1, argv + 1);
}
