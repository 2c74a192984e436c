/* SPDX-License-Identifier: BSD-3-Clause */
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
  if (code != PERDURE_OK) {
    fprintf(stderr, "%s\n", perdure_last_error());
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s POOL\n", argv[0]);
    return 2;
  }
  uint64_t cells = 1000, step = 0, version = 0;
  perdure_pool* pool;
  perdure_array* u;
  check(perdure_open(argv[1], NULL, &pool));  // a directory on DAX, on tmpfs or on a disk
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_TWIN, NULL, &u));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_restart(pool, &version));  // the newest version; 0 if there is none
  printf("begins at step %llu\n", (unsigned long long)step);
  while (step < 500) {
    const double* now = perdure_consistent(u);  // the last version, read-only
    double* next = perdure_working(u);          // the other copy
    for (uint64_t i = 0; i < cells; i++)
      next[i] = i == 0 ? 1 : (now[i - 1] + now[i] + now[i + 1 < cells ? i + 1 : i]) / 3;
    step++;
    check(perdure_commit(pool, &version));  // durable; the two copies swap roles
  }
  printf("u[10] is %.17g\n", ((const double*)perdure_consistent(u))[10]);
  check(perdure_close(pool));
}
