/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * early_end POOL CALL: after two versions rank 0 ends MPI with its window open, while the others
 * make CALL: perdure_win_commit, perdure_commit or MPI_Win_free. Prints what they got.
 * early_end POOL: prints the version that a restart finds.
 */
#include <mpi.h>
#include <perdure/perdure.h>
#include <perdure/perdure_mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static MPI_Win make_window(const char* pool) {
  int64_t* base = NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "u");
  MPI_Info_set(info, "perdure_pool", pool);
  MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Info_free(&info);
  return win;
}

static int make(const char* call, MPI_Win* win) {
  perdure_pool* pool = NULL;
  if (strcmp(call, "MPI_Win_free") == 0) return MPI_Win_free(win);
  if (strcmp(call, "perdure_win_commit") == 0) return perdure_win_commit(*win, NULL);
  return perdure_win_pool(*win, &pool) == PERDURE_OK ? perdure_commit(pool, NULL) : -1;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  MPI_Init(&argc, &argv);
  int rank = 0;
  uint64_t version = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win win = make_window(argv[1]);
  if (argc == 2) {
    perdure_win_restart(win, &version);
    printf("rank %d finds version %llu\n", rank, (unsigned long long)version);
    MPI_Win_free(&win);
  } else {
    for (int v = 0; v < 2; ++v) {
      if (perdure_win_commit(win, &version) != PERDURE_OK) return 1;
    }
    if (rank != 0) {
      const int code = make(argv[2], &win);
      printf("rank %d got %d: %s\n", rank, code, code == 0 ? "" : perdure_last_error());
    }
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
