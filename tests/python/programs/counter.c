/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counter POOL ITERATIONS: the smallest program of perdure.h. Its array "u" holds, at iteration n,
 * n + i in element i. With PERDURE_COUNTER_MPI the ranks of MPI_COMM_WORLD share the pool. Valid C
 * and valid C++.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef PERDURE_COUNTER_MPI
#include "perdure/perdure_mpi.h"
#else
#include "perdure/perdure.h"
#endif

enum { ROWS = 4, COLUMNS = 6 };

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "counter: %s\n", perdure_last_error());
  exit(1);
}

static void count(perdure_pool *pool, uint64_t iterations) {
  const uint64_t shape[2] = {ROWS, COLUMNS};
  uint64_t iteration = 0, version = 0;
  perdure_array *u = NULL;
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 2, shape, PERDURE_COPY, NULL, &u));
  check(perdure_scalar(pool, "iteration", &iteration, sizeof iteration));
  check(perdure_restart(pool, &version));
  int due = PERDURE_NOT_DUE;
  while (iteration < iterations && due != PERDURE_DUE_LAST) {
    double *elements = (double *)perdure_working(u);
    iteration++;
    for (int i = 0; i < ROWS * COLUMNS; i++) elements[i] = (double)(iteration + (uint64_t)i);
    check(perdure_commit_due(pool, &due));
    check(perdure_commit(pool, &version));
  }
  printf("counted to %llu\n", (unsigned long long)iteration);
}

int main(int argc, char **argv) {
  perdure_pool *pool = NULL;
  if (argc != 3) return 2;
#ifdef PERDURE_COUNTER_MPI
  MPI_Init(&argc, &argv);
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], NULL, &pool));
#else
  check(perdure_open(argv[1], NULL, &pool));
#endif
  count(pool, strtoull(argv[2], NULL, 10));
  check(perdure_close(pool));
#ifdef PERDURE_COUNTER_MPI
  MPI_Finalize();
#endif
  return 0;
}
