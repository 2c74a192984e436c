// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of veloc.c with an array in twin mode, as a program has them that was written for
// Perdure; each version is drained as those are:
//
//     twin_commits POOL LEVELS BYTES COMMITS     each rank has an array of BYTES
#include <perdure/perdure_mpi.h>
#include <stdlib.h>

#include "checkpoints.h"

static void check(int code) {
  if (code != PERDURE_OK) need(0, perdure_last_error());
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(argc == 5, "twin_commits POOL LEVELS BYTES COMMITS: reading the arguments");
  const uint64_t cells = strtoull(argv[3], NULL, 10) / sizeof(double);
  const perdure_options options = {.levels = argv[2]};
  perdure_pool* pool = NULL;
  perdure_array* u = NULL;
  uint64_t version = 0;
  const int64_t opened_ns = begin_together();
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_TWIN, NULL, &u));
  check(perdure_restart(pool, &version));
  if (version > 0) {
    print_slowest("restart", now_ns() - opened_ns);
    compare(perdure_consistent(u), cells, (int)version);
  }
  for (int left = atoi(argv[4]); left > 0; left--) {
    check(perdure_levels_wait(pool, NULL));  // not measured, as in veloc.c
    const int64_t step_ns = begin_together();
    fill(perdure_working(u), cells, (int)version + 1);
    const int64_t filled_ns = now_ns() - step_ns;
    const int64_t began_ns = begin_together();
    check(perdure_commit(pool, &version));
    const int64_t blocked_ns = now_ns() - began_ns;
    print_slowest("checkpoint", blocked_ns);
    print_slowest("step", filled_ns + blocked_ns);
  }
  check(perdure_levels_wait(pool, NULL));
  check(perdure_close(pool));
  MPI_Finalize();
  return 0;
}
