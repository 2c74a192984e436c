/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A cached file that is committed with a pool, of a program that goes on with whatever number of
 * ranks it gets:
 *
 *     files POOL STEPS [KILL_RANK KILL_US]
 *
 * The file is POOL.file. Each step writes all of it, a rank some of its blocks, and it grows; the
 * array has the step's number. A job of another number of ranks finds the file at the
 * version that it goes on with, in its directory and by the cache. It ends as killed, so that the
 * parts of the file stay. What is printed is as in ranks_job.h. */
#include <unistd.h>

#include "ranks_job.h"

enum { BLOCK = 500, BLOCKS = 40 }; /* ints, and how many of them at step 0 */

static void check_mpi(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (error == MPI_SUCCESS) return;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "rank %d: %s\n", rank, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static int blocks_at(uint64_t at) {
  return BLOCKS + (int)at;
}

static int word(int block, int i, uint64_t at) {
  return (int)at * 100003 + block * BLOCK + i;
}

/* As it is in its directory. */
static void judge_file(const char* path) {
  FILE* file = fopen(path, "r");
  int got[BLOCK], right = file != NULL;
  const int blocks = step == 0 ? 0 : blocks_at(step);
  for (int block = 0; block < blocks && right; block++) {
    right = fread(got, sizeof got, 1, file) == 1;
    for (int i = 0; i < BLOCK && right; i++) right = got[i] == word(block, i, step);
  }
  if (right) right = fgetc(file) == EOF;
  judge(right, "file");
  if (file != NULL) fclose(file);
}

static void judge_cached(MPI_File file) {
  int got[BLOCK];
  MPI_Offset bytes = 0;
  const int blocks = step == 0 ? 0 : blocks_at(step);
  check_mpi(MPI_File_get_size(file, &bytes));
  judge(bytes == (MPI_Offset)(blocks * sizeof got), "size of the file");
  for (int block = rank; block < blocks; block += ranks) {
    check_mpi(MPI_File_read_at(file, (MPI_Offset)(block * sizeof got), got, BLOCK, MPI_INT,
                               MPI_STATUS_IGNORE));
    for (int i = 0; i < BLOCK; i++) judge(got[i] == word(block, i, step), "block of the file");
  }
}

static MPI_File open_file(const char* path, const char* pool) {
  MPI_Info info;
  MPI_File file;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_cache", "on");
  MPI_Info_set(info, "perdure_cache_from", "0");
  MPI_Info_set(info, "perdure_cache_pool", pool);
  MPI_Info_set(info, "perdure_cache_directory", pool);
  check_mpi(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  MPI_Info_free(&info);
  return file;
}

static void write_step(MPI_File file, uint64_t at) {
  int block[BLOCK];
  check_mpi(MPI_File_set_size(file, (MPI_Offset)(blocks_at(at) * sizeof block)));
  for (int b = rank; b < blocks_at(at); b += ranks) {
    for (int i = 0; i < BLOCK; i++) block[i] = word(b, i, at);
    check_mpi(MPI_File_write_at(file, (MPI_Offset)(b * sizeof block), block, BLOCK, MPI_INT,
                                MPI_STATUS_IGNORE));
  }
  check_mpi(MPI_File_sync(file));
}

int main(int argc, char** argv) {
  const double begin_s = begin_job(argc, argv);
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  char path[4096];
  snprintf(path, sizeof path, "%s.file", argv[1]);
  perdure_pool* pool;
  const perdure_options options = {.flags = PERDURE_ANY_RANKS, .job = "files"};
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  perdure_pool_status status;
  check(perdure_status(pool, &status));
  perdure_array* array;
  const uint64_t one = 1;
  const perdure_array_options same = {.ranks = PERDURE_SAME};
  check(perdure_array_open(pool, "step", PERDURE_UINT64, 1, &one, PERDURE_COPY, &same, &array));
  uint64_t version = 0, made = 0;
  check(perdure_restart(pool, &version));
  step = *(const uint64_t*)perdure_consistent(array);
  if (version != 0 && status.old_ranks != (unsigned)ranks) judge_file(path);
  double until_s = 0;
  MPI_File file = open_file(path, argv[1]);
  judge_cached(file);
  for (uint64_t i = 0; i < steps; i++) {
    step++;
    write_step(file, step);
    *(uint64_t*)perdure_working(array) = step;
    check(perdure_commit(pool, &made));
    judge(made == step, "number of the version");
    if (i == 0) until_s = MPI_Wtime() - begin_s;
  }
  /* What no version has goes back. */
  write_step(file, step + 1);
  print_back(version, status.old_ranks, until_s);
  if (rank == 0) {
    printf("ends killed\n");
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(100000); /* the launcher has what was printed */
  raise(SIGKILL); /* and the parts stay */
  return 0;
}
