/* SPDX-License-Identifier: BSD-3-Clause
 *
 *     bench_divide make|take POOL EDGE
 *
 * A square in a pool: made and committed, or taken by another number of ranks up to the end of
 * perdure_restart(). That leaves the pool as it was. */
#include <perdure/perdure_mpi.h>
#include <string.h>

#include "divide.h"

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "rank %d: %s\n", rank, perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) return 2;
  find_block(argv[3]);
  const uint64_t square[] = {edge, edge};
  const perdure_options options = {.flags = PERDURE_ANY_RANKS, .job = "bench divide"};
  perdure_pool* pool;
  perdure_array* array;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[2], &options, &pool));
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 2, own, PERDURE_TWIN, NULL, &array));
  check(perdure_array_box(array, square, first));
  check(perdure_restart(pool, NULL));
  int code = 0;
  if (strcmp(argv[1], "make") == 0) {
    fill(perdure_working(array));
    check(perdure_commit(pool, NULL));
  } else {
    const double* const block = perdure_consistent(array);
    volatile double sum = touch(block);
    (void)sum;
    code = report(block, begin_s, MPI_Wtime());
  }
  check(perdure_close(pool));
  MPI_Finalize();
  return code;
}
