// SPDX-License-Identifier: BSD-3-Clause
/* ends FOLDER END [WHAT…]: a program that ends without closing anything that it has open. Meant for
 * two ranks, linked with libperdure_mpi. check.py looks at what is left.
 *
 * END   finalize    MPI_Finalize(), then a return from main()
 *       exit        exit(0) on all ranks, without MPI_Finalize()
 *       return      a return from main(), the same way
 *       exit_one    exit(0), of the process whose ENDS_RANK is 0, while the one of 1 goes on
 *       abort, mpi_abort, sigterm, sigkill, _exit    all ranks
 *       full_finalize, full_exit    the same two, where the files can't grow any more
 *       handler     exit(0) from a signal handler that interrupts a write
 * WHAT  cached      FOLDER/cached: cached from its first byte, CELLS writes of 4 bytes a rank
 *       later       FOLDER/later: the same, cached when it has paid
 *       aside       FOLDER/aside: few writes, so that it stands aside to its end
 *       pooled      FOLDER/pooled: committed with the pool, half of the writes after the commit
 *       pool        FOLDER/pool: version 1 has 1s, 2s come after it
 *       window      FOLDER/windows: the same in a persistent window
 * All if none is named. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "perdure/perdure_mpi.h"

enum { CELLS = 2000, FEW = 10, WORDS = 1000 };

static int rank, ranks, named;
static char** names;
static const char* folder;
static MPI_File endless;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "ends: rank %d: %s: %s\n", rank, what, perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static int wanted(const char* what) {
  for (int i = 0; i < named; i++) {
    if (strcmp(names[i], what) == 0) return 1;
  }
  return named == 0;
}

static const char* path_of(const char* name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static MPI_Info hints(const char* from, const char* pool) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_cache", "on");
  // Beside the pool, as levels want it.
  if (pool == NULL) MPI_Info_set(info, "perdure_cache_directory", path_of("parts"));
  if (from != NULL) MPI_Info_set(info, "perdure_cache_from", from);
  if (pool != NULL) MPI_Info_set(info, "perdure_cache_pool", path_of(pool));
  return info;
}

static MPI_File open_file(const char* name, const char* from, const char* pool) {
  MPI_File file;
  MPI_Info info = hints(from, pool);
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  need(MPI_File_open(MPI_COMM_WORLD, path_of(name), amode, info, &file) == MPI_SUCCESS, name);
  MPI_Info_free(&info);
  return file;
}

/* Cell i of a file is i + 1, and rank r writes those with i mod ranks == r. */
static void write_cells(MPI_File file, int first, int end) {
  for (int i = first; i < end; i++) {
    const int cell = i * ranks + rank, value = cell + 1;
    const MPI_Offset at = (MPI_Offset)cell * 4;
    const int error = MPI_File_write_at(file, at, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    need(error == MPI_SUCCESS, "write");
  }
}

static void open_pool(void) {
  perdure_pool* pool = NULL;
  perdure_array* array = NULL;
  uint64_t words = WORDS, version = 0;
  need(perdure_open_mpi(MPI_COMM_WORLD, path_of("pool"), NULL, &pool) == 0, "open");
  need(perdure_array_open(pool, "u", PERDURE_INT64, 1, &words, PERDURE_COPY, NULL, &array) == 0,
       "array");
  need(perdure_restart(pool, &version) == 0 && version == 0, "restart");
  MPI_File pooled = MPI_FILE_NULL;
  if (wanted("pooled")) pooled = open_file("pooled", NULL, "pool");
  int64_t* u = perdure_working(array);
  for (int i = 0; i < WORDS; i++) u[i] = 1;
  if (pooled != MPI_FILE_NULL) write_cells(pooled, 0, CELLS / 2);
  need(perdure_commit(pool, &version) == 0 && version == 1, "commit");
  for (int i = 0; i < WORDS; i++) u[i] = 2;
  if (pooled != MPI_FILE_NULL) write_cells(pooled, CELLS / 2, CELLS);
}

static void open_window(void) {
  MPI_Info info;
  MPI_Win win;
  int64_t* base = NULL;
  uint64_t version = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "w");
  MPI_Info_set(info, "perdure_pool", path_of("windows"));
  const MPI_Aint bytes = (MPI_Aint)WORDS * 8;
  need(MPI_Win_allocate(bytes, 8, info, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS, "window");
  MPI_Info_free(&info);
  MPI_Win_fence(0, win);
  for (int i = 0; i < WORDS; i++) base[i] = 1;
  MPI_Win_fence(0, win);
  need(perdure_win_commit(win, &version) == 0, "commit of the window");
  for (int i = 0; i < WORDS; i++) base[i] = 2;
}

static void leave_now(int number) {
  (void)number;
  exit(0);  // NOLINT(bugprone-signal-handler): programs do that
}

/* The signal comes in the middle of a write, most likely. */
static void interrupt_writes(void) {
  struct itimerval soon = {{0, 0}, {0, 20000 + 1000 * rank}};
  signal(SIGALRM, leave_now);
  setitimer(ITIMER_REAL, &soon, NULL);
  while (1) write_cells(endless, 0, CELLS);
}

/* From now on what is written back to the files fails. */
static const char* end_when_full(const char* end) {
  const struct rlimit limit = {8000, 8000};
  if (strncmp(end, "full_", 5) != 0) return end;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  return end + 5;
}

static int end_by(const char* end) {
  end = end_when_full(end);
  if (strcmp(end, "exit") == 0) exit(0);
  if (strcmp(end, "_exit") == 0) _exit(0);
  if (strcmp(end, "abort") == 0) abort();
  if (strcmp(end, "mpi_abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (strcmp(end, "sigterm") == 0) kill(getpid(), SIGTERM);
  if (strcmp(end, "sigkill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(end, "handler") == 0) interrupt_writes();
  if (strcmp(end, "finalize") == 0) MPI_Finalize();
  return 0;
}

/* Two processes that no launcher connects, as it would end one with the other: rank 0 ends while
 * rank 1 has the files open, and writes on afterwards. */
static void await(const char* name) {
  while (access(path_of(name), F_OK) != 0) usleep(1000);
}

static void write_files(int first, int end) {
  static MPI_File cached, later, aside;
  if (first == 0) {
    cached = open_file("cached", "0", NULL);
    later = open_file("later", NULL, NULL);
    aside = open_file("aside", NULL, NULL);
  }
  write_cells(cached, first, end);
  write_cells(later, first, end);
  write_cells(aside, first * FEW / CELLS, end * FEW / CELLS);
}

static int end_one(void) {
  const char* const given = getenv("ENDS_RANK");
  rank = given == NULL ? 0 : atoi(given);
  ranks = 2;
  write_files(0, CELLS / 2);
  if (rank == 1) {
    close(open(path_of("open"), O_CREAT | O_WRONLY, 0600));
    await("gone");
  }
  write_files(CELLS / 2, CELLS);
  if (rank == 0) await("open");
  exit(0);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  folder = argv[1];
  names = argv + 3;
  named = argc - 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(argv[2], "exit_one") == 0) return end_one();
  if (wanted("pool")) open_pool();
  if (wanted("window")) open_window();
  if (wanted("cached")) write_cells(endless = open_file("cached", "0", NULL), 0, CELLS);
  if (wanted("later")) write_cells(open_file("later", NULL, NULL), 0, CELLS);
  if (wanted("aside")) write_cells(open_file("aside", NULL, NULL), 0, FEW);
  MPI_Barrier(MPI_COMM_WORLD);
  return end_by(argv[2]);
}
