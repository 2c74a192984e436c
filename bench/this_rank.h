// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs in C share that are ranks of a benchmark.
#ifndef PERDURE_BENCH_THIS_RANK_H
#define PERDURE_BENCH_THIS_RANK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);  // for a compiler, which does not know that MPI_Abort never returns
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
