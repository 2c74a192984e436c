/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A job that is sent twice, with other input each time (two_runs.py).
 *
 *   two_runs_job PLACE INPUT STEPS
 *
 * Rank r is on the pretended node of the r-th number in $TWO_RUNS_NODES, in whose folder of PLACE
 * its pool is. What its array holds at a version is a pure function of the input of the run that
 * committed it; a start that finds anything else ends with 4. Each rank says "pid PID", rank 0
 * "restarted VERSION INPUT", and after each commit "committed VERSION". It ends after STEPS
 * versions, or when PLACE/stop-INPUT is there; with TWO_RUNS_HOLD it waits after STEPS versions to
 * be killed. */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perdure/perdure_mpi.h"

enum { cells = 3000 };

static uint64_t cell(uint64_t input, uint64_t version, int rank, int i) {
  uint64_t z = input * 0x9E3779B97F4A7C15U + version * 0xBF58476D1CE4E5B9U +
               (uint64_t)(rank * cells + i) * 0x94D049BB133111EBU;
  z = (z ^ (z >> 29)) * 0xD6E8FEB86659FD93U;
  return z ^ (z >> 32);
}

/* Of a collective call: it fails on all ranks, each of which has something to say. */
static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  MPI_Finalize(); /* a launcher that aborts may lose what was printed */
  exit(3);
}

static int is_wrong(const uint64_t* u, uint64_t input, uint64_t version, int rank) {
  for (int i = 0; i < cells && version > 0; ++i) {
    if (u[i] != cell(input, version, rank, i)) return 1;
  }
  return 0;
}

static int node_of(int rank) {
  const char* text = getenv("TWO_RUNS_NODES");
  char* end = NULL;
  long node = 0;
  for (int i = 0; i <= rank; ++i, text = end) node = strtol(text, &end, 10);
  return (int)node;
}

static int must_stop(const char* place, const char* input) {
  char path[512];
  snprintf(path, sizeof path, "%s/stop-%s", place, input);
  int found = access(path, F_OK) == 0;
  MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return found;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4 || !getenv("TWO_RUNS_NODES")) MPI_Abort(MPI_COMM_WORLD, 2);
  const uint64_t own_input = strtoull(argv[2], NULL, 10);
  const uint64_t steps = strtoull(argv[3], NULL, 10);
  printf("pid %d\n", (int)getpid());
  fflush(stdout);
  char node[16];
  char path[512];
  snprintf(node, sizeof node, "%d", node_of(rank));
  setenv("PERDURE_NODE_ID", node, 1);
  snprintf(path, sizeof path, "%s/node-%s/pool", argv[1], node);
  perdure_options options = {0};
  options.job = "two_runs";
  perdure_pool* pool = NULL;
  check(perdure_open_mpi(MPI_COMM_WORLD, path, &options, &pool));
  perdure_array* array = NULL;
  const uint64_t shape[] = {cells};
  check(perdure_array_open(pool, "u", PERDURE_INT64, 1, shape, PERDURE_COPY, NULL, &array));
  uint64_t input = 0;
  uint64_t version = 0;
  check(perdure_scalar(pool, "input", &input, sizeof input));
  check(perdure_restart(pool, &version));
  uint64_t* const u = perdure_working(array);
  if (is_wrong(u, input, version, rank)) {
    fprintf(stderr, "rank %d: wrong at version %" PRIu64 "\n", rank, version);
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  if (rank == 0) printf("restarted %" PRIu64 " %" PRIu64 "\n", version, input);
  fflush(stdout);
  input = own_input;
  while (version < steps && !must_stop(argv[1], argv[2])) {
    for (int i = 0; i < cells; ++i) u[i] = cell(input, version + 1, rank, i);
    check(perdure_commit(pool, &version));
    if (rank == 0) printf("committed %" PRIu64 "\n", version);
    fflush(stdout);
    const struct timespec time = {0, 20000000};
    nanosleep(&time, NULL);
  }
  if (getenv("TWO_RUNS_HOLD")) {
    for (;;) pause();
  }
  check(perdure_close(pool));
  MPI_Finalize();
  return 0;
}
