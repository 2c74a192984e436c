// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking time of checkpoints, and the time of a restart, through VELOC's client interface:
//
//     veloc CONFIG BYTES CHECKPOINTS     each rank has a region of BYTES
//
// Each rank stores to all of the region before each, and compares after a restart. The same source
// is compiled with VELOC's own library, so it knows nothing of Perdure.
#include <stdlib.h>
#include <veloc.h>

#include "checkpoints.h"

static int restart(double* u, size_t cells) {
  const int64_t began_ns = begin_together();
  const int version = VELOC_Restart_test("bench", 0);
  if (version <= 0) return 0;
  need(VELOC_Restart("bench", version) == VELOC_SUCCESS, "Restart");
  print_slowest("restart", now_ns() - began_ns);
  compare(u, cells, version);
  return version;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(argc == 4 && VELOC_Init(MPI_COMM_WORLD, argv[1]) == VELOC_SUCCESS, "Init");
  const size_t cells = strtoull(argv[2], NULL, 10) / sizeof(double);
  double* u = malloc(cells * sizeof *u);
  need(u != NULL, "memory");
  fill(u, cells, 0);
  VELOC_Mem_protect(0, u, cells, sizeof *u);
  int version = restart(u, cells);
  for (int left = atoi(argv[3]); left > 0; left--) {
    need(VELOC_Checkpoint_wait() == VELOC_SUCCESS, "Checkpoint_wait");  // not measured
    const int64_t step_ns = begin_together();
    fill(u, cells, ++version);
    const int64_t filled_ns = now_ns() - step_ns;
    const int64_t began_ns = begin_together();
    need(VELOC_Checkpoint("bench", version) == VELOC_SUCCESS, "Checkpoint");
    const int64_t blocked_ns = now_ns() - began_ns;
    print_slowest("checkpoint", blocked_ns);
    print_slowest("step", filled_ns + blocked_ns);
  }
  need(VELOC_Finalize(1) == VELOC_SUCCESS, "Finalize");
  free(u);
  MPI_Finalize();
  return 0;
}
