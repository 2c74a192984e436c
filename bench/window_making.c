/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_window_making WINDOWS: nanoseconds for making and freeing a window of 64 bytes, and one of
 * memory that the ranks share, as one JSON object. Plain MPI: it is run as it is, and with its
 * windows made persistent by the environment (python/perdure_bench/windows_making.py).
 *
 * Of the batches of WINDOWS windows each the fastest counts, by the slowest rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 64, BATCHES = 9 };

typedef int (*make)(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*);

static double batch_ns(make window, int windows) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < windows; i++) {
    char* base;
    MPI_Win made;
    window(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&base, &made);
    MPI_Win_free(&made);
  }
  double own = (MPI_Wtime() - begin) * 1e9 / windows, slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static double fastest_ns(make window, int windows) {
  double fastest = batch_ns(window, windows); /* which also opens what is opened once */
  for (int i = 0; i < BATCHES; i++) {
    const double ns = batch_ns(window, windows);
    if (ns < fastest) fastest = ns;
  }
  return fastest;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int windows = argc == 2 ? atoi(argv[1]) : 0;
  if (windows < 1) {
    fprintf(stderr, "usage: bench_window_making WINDOWS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const double alone = fastest_ns(MPI_Win_allocate, windows);
  const double shared = fastest_ns(MPI_Win_allocate_shared, windows);
  if (rank == 0) printf("{\"make-free-64B\": %.0f, \"make-free-shared\": %.0f}\n", alone, shared);
  MPI_Finalize();
  return 0;
}
