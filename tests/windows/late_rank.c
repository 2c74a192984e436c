/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late_rank POOL SECONDS CALL: CALL commits, and rank 0 comes to it SECONDS later than the other
 * ranks, or, if that is negative, never. CALL is MPI_Win_wait, perdure_win_commit (of a window that
 * commits at fences), perdure_commit, perdure_commit_wait or perdure_ipv_persist (of a pool of
 * perdure_open_mpi).
 */
#include <mpi.h>
#include <perdure/perdure.h>
#include <perdure/perdure_ipv.h>
#include <perdure/perdure_mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int late = 0;
static int rank = 0;
static int ranks = 1;

static void come_late(void) {
  if (rank == 0 && late > 0) sleep((unsigned)late);
  if (rank == 0 && late < 0) pause();
}

static int done(int code) {
  if (code != PERDURE_OK) fprintf(stderr, "rank %d: %s\n", rank, perdure_last_error());
  return code == PERDURE_OK;
}

static MPI_Win make_window(const char* pool, const char* rule, int64_t** base) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "u");
  MPI_Info_set(info, "perdure_pool", pool);
  MPI_Info_set(info, "perdure_commit", rule);
  MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, base, &win);
  MPI_Info_free(&info);
  return win;
}

/* Rank 0 stores into all others, and they, before they wait, into rank 0. */
static int commit_by_wait(const char* pool) {
  int64_t* base = NULL;
  MPI_Win win = make_window(pool, "wait", &base);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group other = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
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
  come_late();
  MPI_Win_wait(win);
  const int64_t expected = rank == 0 ? 100 + ranks - 1 : 100;
  const int right = base[rank == 0 ? ranks - 1 : 0] == expected;
  if (!right) fprintf(stderr, "rank %d has the wrong value\n", rank);
  MPI_Group_free(&other);
  MPI_Group_free(&all);
  MPI_Win_free(&win);
  return right;
}

static int commit_window(const char* pool) {
  int64_t* base = NULL;
  uint64_t version = 0;
  MPI_Win win = make_window(pool, "fence", &base);
  MPI_Win_fence(0, win);
  come_late();
  const int right = done(perdure_win_commit(win, &version)) && version == 2;
  MPI_Win_free(&win);
  return right;
}

static int commit_pool(const char* path, int in_two_steps) {
  perdure_pool* pool = NULL;
  uint64_t step = 7;
  uint64_t version = 0;
  if (!done(perdure_open_mpi(MPI_COMM_WORLD, path, NULL, &pool))) return 0;
  if (!done(perdure_scalar(pool, "step", &step, sizeof step))) return 0;
  if (!done(perdure_restart(pool, &version))) return 0;
  if (in_two_steps && !done(perdure_commit_begin(pool))) return 0;
  come_late();
  const int code =
      in_two_steps ? perdure_commit_wait(pool, &version) : perdure_commit(pool, &version);
  return done(code) && version == 1 && done(perdure_close(pool));
}

/* With lag 1 the second call waits for the version that the first one began. */
static int persist_objects(const char* path) {
  static double u[512];
  perdure_pool* pool = NULL;
  uint64_t version = 0;
  if (!done(perdure_open_mpi(MPI_COMM_WORLD, path, NULL, &pool))) return 0;
  if (!done(perdure_ipv_open(pool, NULL))) return 0;
  if (!done(perdure_ipv_object("u", u, sizeof u, NULL))) return 0;
  if (!done(perdure_ipv_restart(&version))) return 0;
  u[0] = 1;
  if (!done(perdure_ipv_persist(NULL))) return 0;
  u[0] = 2;
  come_late();
  const int right = done(perdure_ipv_persist(&version)) && version == 1;
  return right && done(perdure_ipv_close()) && done(perdure_close(pool));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  MPI_Init(&argc, &argv);
  late = atoi(argv[2]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* call = argv[3];
  int right = 0;
  if (strcmp(call, "MPI_Win_wait") == 0) right = commit_by_wait(argv[1]);
  if (strcmp(call, "perdure_win_commit") == 0) right = commit_window(argv[1]);
  if (strcmp(call, "perdure_commit") == 0) right = commit_pool(argv[1], 0);
  if (strcmp(call, "perdure_commit_wait") == 0) right = commit_pool(argv[1], 1);
  if (strcmp(call, "perdure_ipv_persist") == 0) right = persist_objects(argv[1]);
  MPI_Finalize();
  return right ? 0 : 1;
}
