/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late_rank POOL SECONDS: MPI_Win_wait commits, and rank 0 comes to it SECONDS later than the other
 * ranks, or, if that is negative, waits for a message that nobody sends.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  const int late = atoi(argv[2]);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "u");
  MPI_Info_set(info, "perdure_pool", argv[1]);
  MPI_Info_set(info, "perdure_commit", "wait");
  int64_t* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &base, &win);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group other = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  /* Rank 0 stores into all others, and they, before they wait, into rank 0. */
  const int zero = 0;
  if (rank == 0) {
    MPI_Group_excl(all, 1, &zero, &other);
  } else {
    MPI_Group_incl(all, 1, &zero, &other);
  }
  const int64_t value = 100 + rank;
  MPI_Win_post(other, 0, win);
  MPI_Win_start(other, 0, win);
  for (int to = rank == 0 ? 1 : 0; to < (rank == 0 ? ranks : 1); ++to) {
    MPI_Put(&value, 1, MPI_INT64_T, to, rank, 1, MPI_INT64_T, win);
  }
  MPI_Win_complete(win);
  if (rank == 0 && late > 0) sleep((unsigned)late);
  if (rank == 0 && late < 0) pause();
  MPI_Win_wait(win);
  const int64_t expected = rank == 0 ? 100 + ranks - 1 : 100;
  const int right = base[rank == 0 ? ranks - 1 : 0] == expected;
  if (!right) fprintf(stderr, "rank %d has the wrong value\n", rank);
  MPI_Group_free(&other);
  MPI_Group_free(&all);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
  MPI_Finalize();
  return right ? 0 : 1;
}
