// SPDX-License-Identifier: BSD-3-Clause
//
// fake_sysfs_tree ROOT KIND [BEHAVIOUR…]: makes a fake tree for tests of programs.
#include <cstdio>

#include "energy/testing/fake_tree.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "fake_sysfs_tree ROOT KIND [BEHAVIOUR…]\n");
    return 2;
  }
  const perdure::energy::fake::FakeTree tree(argv[1]);
  if (!perdure::energy::fake::make_machine(tree, argv[2])) {
    std::fprintf(stderr, "no kind %s\n", argv[2]);
    return 2;
  }
  for (int i = 3; i < argc; ++i) tree.behave(argv[i]);
  return 0;
}
