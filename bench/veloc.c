// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking time of checkpoints, and the time of a restart, through VELOC's client interface:
//
//     veloc CONFIG BYTES CHECKPOINTS     each rank has a region of BYTES
//
// Rank 0 prints "restart NS" if there was a checkpoint, and "checkpoint NS" for each: what the
// slowest rank waited. Each rank stores to all of the region before each, and compares after a
// restart. The same source is compiled with VELOC's own library, so it knows nothing of Perdure.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <veloc.h>

static int rank;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void print_slowest(const char* what, int64_t spent_ns) {
  int64_t slowest_ns = 0;
  MPI_Reduce(&spent_ns, &slowest_ns, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %lld\n", what, (long long)slowest_ns);
}

static void fill(double* u, size_t cells, int version) {
  for (size_t i = 0; i < cells; i++) u[i] = version + (double)i;
}

static int restart(double* u, size_t cells) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t began_ns = now_ns();
  const int version = VELOC_Restart_test("bench", 0);
  if (version <= 0) return 0;
  need(VELOC_Restart("bench", version) == VELOC_SUCCESS, "Restart");
  print_slowest("restart", now_ns() - began_ns);
  for (size_t i = 0; i < cells; i++) need(u[i] == version + (double)i, "the restored region");
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
    fill(u, cells, ++version);
    need(VELOC_Checkpoint_wait() == VELOC_SUCCESS, "Checkpoint_wait");  // not measured
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t began_ns = now_ns();
    need(VELOC_Checkpoint("bench", version) == VELOC_SUCCESS, "Checkpoint");
    print_slowest("checkpoint", now_ns() - began_ns);
  }
  need(VELOC_Finalize(1) == VELOC_SUCCESS, "Finalize");
  free(u);
  MPI_Finalize();
  return 0;
}
