// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs of `perdure bench veloc` share. Rank 0 prints what the slowest rank took:
// "restart NS" if there was a checkpoint, and for each checkpoint "checkpoint NS", which kept the
// program waiting, and "step NS", with the stores to all of the region before it.
#ifndef PERDURE_BENCH_CHECKPOINTS_H
#define PERDURE_BENCH_CHECKPOINTS_H

#include <stddef.h>

#include "this_rank.h"

static int64_t begin_together(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  return now_ns();
}

static void print_slowest(const char* what, int64_t spent_ns) {
  int64_t slowest_ns = 0;
  MPI_Reduce(&spent_ns, &slowest_ns, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %lld\n", what, (long long)slowest_ns);
}

static void fill(double* u, size_t cells, int version) {
  for (size_t i = 0; i < cells; i++) u[i] = version + (double)i;
}

static void compare(const double* u, size_t cells, int version) {
  for (size_t i = 0; i < cells; i++) need(u[i] == version + (double)i, "the restored region");
}

#endif
