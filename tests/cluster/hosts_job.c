// SPDX-License-Identifier: BSD-3-Clause
//
// The job that tests/cluster/hosts_episodes.py starts on several hosts, and takes hosts from:
//
//   hosts_job POOL SHARED NAME SEED WAIT_EVERY PACE_US [file]
//
// Its state is a window, arrays in modes copy, twin and log, and with "file" a cached file that is
// committed with the pool. What they hold at step s follows from SEED and s alone. So a start that
// finds anything torn, mixed, or of a job with another seed, sees it in some byte, and ends with 4.
//
// What it says goes to SHARED/acks/NAME.RANK, which outlives hosts, a line at a time:
//
//   opening       it is about to open the pool
//   restarted S   all bytes on all ranks are those of step S, which the pool went back to
//   committed S   the commit of step S has returned
//   levels S      perdure_levels_wait, called every WAIT_EVERY steps, said that S is on all levels
//   closed S      the pool is closed, and the plain file has the bytes of step S
//
// It goes on until there is SHARED/NAME.stop. Exit code 3: Perdure or MPI refused, with a sentence.
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perdure/perdure_mpi.h"

enum { cells = 3000, log_blocks = 7, file_blocks = 11, stripe_bytes = 5003, remembered = 4096 };
enum { of_copy, of_twin, of_log, of_window, of_file };  // what a value is for

static struct {
  const char *pool_path, *shared, *name;
  uint64_t seed, wait_every, pace_us;
  int has_file, rank, ranks, acks;
  perdure_pool* pool;
  perdure_array *copy, *twin, *log;
  MPI_Win window;
  uint64_t* window_base;
  MPI_File file;
  uint64_t step;
  uint64_t step_of_version[remembered];
} job;

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

static uint64_t value(int what, int rank, uint64_t step, uint64_t index) {
  if (step == 0) return 0;
  return mix(mix(mix(job.seed, step), (uint64_t)(what * 1024 + rank)), index);
}

// The newest step up to `step` that wrote the block; 0: none has.
static uint64_t last_write(uint64_t step, uint64_t block, uint64_t blocks) {
  const uint64_t back = (step + blocks - block) % blocks;
  return back < step ? step - back : 0;
}

static void refuse(const char* what, const char* why) {
  fprintf(stderr, "hosts_job: rank %d: %s: %s\n", job.rank, what, why);
  fflush(stderr);
  _exit(3);
}

static void check(int code, const char* what) {
  if (code != PERDURE_OK) refuse(what, perdure_last_error());
}

static void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  refuse(what, text);
}

static void acknowledge(const char* what, uint64_t step) {
  char line[64];
  const int bytes = snprintf(line, sizeof line, "%s %" PRIu64 "\n", what, step);
  if (write(job.acks, line, (size_t)bytes) != bytes) refuse("acknowledge", "a line was cut");
}

static void open_acks(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/acks/%s.%d", job.shared, job.name, job.rank);
  job.acks = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (job.acks < 0) refuse("open", path);
}

static void file_path(char* path, size_t bytes) {
  snprintf(path, bytes, "%s/%s.dat", job.shared, job.name);
}

static void open_window(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "window");
  MPI_Info_set(info, "perdure_pool", job.pool_path);
  check_mpi(MPI_Win_allocate(cells * 8, 8, info, MPI_COMM_WORLD, &job.window_base, &job.window),
            "MPI_Win_allocate");
  MPI_Info_free(&info);
}

static void open_file(void) {
  char path[4096];
  file_path(path, sizeof path);
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "perdure_cache", "on");
  MPI_Info_set(hints, "perdure_cache_from", "0");
  MPI_Info_set(hints, "perdure_cache_block", job.seed % 2 == 0 ? "4096" : "65536");
  MPI_Info_set(hints, "perdure_cache_pool", job.pool_path);
  check_mpi(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &job.file),
            "MPI_File_open");
  MPI_Info_free(&hints);
}

static void open_all(void) {
  const uint64_t shape = cells;
  open_window();
  check(perdure_win_pool(job.window, &job.pool), "perdure_win_pool");
  check(
      perdure_array_open(job.pool, "copy", PERDURE_INT64, 1, &shape, PERDURE_COPY, NULL, &job.copy),
      "perdure_array_open copy");
  const perdure_array_options checksums = {.flags = PERDURE_CHECKSUM};
  check(perdure_array_open(job.pool, "twin", PERDURE_INT64, 1, &shape, PERDURE_TWIN, &checksums,
                           &job.twin),
        "perdure_array_open twin");
  check(perdure_array_open(job.pool, "log", PERDURE_INT64, 1, &shape, PERDURE_LOG, NULL, &job.log),
        "perdure_array_open log");
  check(perdure_scalar(job.pool, "iteration", &job.step, sizeof job.step), "perdure_scalar");
  if (job.has_file) open_file();
}

static uint64_t log_value(uint64_t step, uint64_t index) {
  const uint64_t block = index * log_blocks / cells;
  return value(of_log, job.rank, last_write(step, block, log_blocks), index);
}

static int differs(const char* what, uint64_t index, uint64_t got, uint64_t right) {
  fprintf(stderr,
          "hosts_job: rank %d: WRONG at step %" PRIu64 ": %s[%" PRIu64 "] is %" PRIx64
          ", not %" PRIx64 "\n",
          job.rank, job.step, what, index, got, right);
  return 1;
}

static int verify_arrays(void) {
  const uint64_t* copy = perdure_consistent(job.copy);
  const uint64_t* twin = perdure_consistent(job.twin);
  const uint64_t* log = perdure_consistent(job.log);
  for (uint64_t i = 0; i < cells; i++) {
    const uint64_t right[4] = {value(of_copy, job.rank, job.step, i),
                               value(of_twin, job.rank, job.step, i), log_value(job.step, i),
                               value(of_window, job.rank, job.step, i)};
    if (copy[i] != right[0]) return differs("copy", i, copy[i], right[0]);
    if (twin[i] != right[1]) return differs("twin", i, twin[i], right[1]);
    if (log[i] != right[2]) return differs("log", i, log[i], right[2]);
    if (job.window_base[i] != right[3]) {
      return differs("window", i, job.window_base[i], right[3]);
    }
  }
  return 0;
}

static void stripe_at(unsigned char* stripe, int rank, uint64_t step) {
  for (uint64_t i = 0; i < stripe_bytes; i++) {
    stripe[i] = (unsigned char)(value(of_file, rank, step, i / 8) >> (8 * (i % 8)));
  }
}

// What the file holds at the step; the caller frees it.
static unsigned char* file_at(uint64_t step, uint64_t* bytes) {
  const uint64_t row = (uint64_t)job.ranks * stripe_bytes;
  unsigned char* all = calloc(file_blocks, row);
  if (all == NULL) refuse("calloc", "no memory");
  *bytes = 0;
  for (uint64_t block = 0; block < file_blocks; block++) {
    const uint64_t written = last_write(step, block, file_blocks);
    if (written == 0) continue;
    for (int rank = 0; rank < job.ranks; rank++) {
      stripe_at(all + block * row + (uint64_t)rank * stripe_bytes, rank, written);
    }
    *bytes = (block + 1) * row;
  }
  return all;
}

static int compare_file(const char* what, const unsigned char* got, uint64_t got_bytes) {
  uint64_t bytes = 0;
  unsigned char* right = file_at(job.step, &bytes);
  uint64_t at = 0;
  while (at < bytes && at < got_bytes && got[at] == right[at]) at++;
  const int wrong = got_bytes != bytes || at != bytes;
  if (wrong) {
    fprintf(stderr,
            "hosts_job: rank %d: WRONG at step %" PRIu64 ": %s differs at byte %" PRIu64
            ", has %" PRIu64 " bytes, not %" PRIu64 "\n",
            job.rank, job.step, what, at, got_bytes, bytes);
  }
  free(right);
  return wrong;
}

static int verify_file(void) {
  if (job.step == 0) return 0;  // it may have what was written before the first commit
  const uint64_t room = (uint64_t)job.ranks * stripe_bytes * file_blocks + 100;
  unsigned char* got = malloc(room);
  if (got == NULL) refuse("malloc", "no memory");
  MPI_Status status;
  int count = 0;
  check_mpi(MPI_File_read_at(job.file, 0, got, (int)room, MPI_BYTE, &status), "MPI_File_read_at");
  MPI_Get_count(&status, MPI_BYTE, &count);
  const int wrong = compare_file("the cached file", got, (uint64_t)count);
  free(got);
  return wrong;
}

static int verify_plain_file(void) {
  char path[4096];
  file_path(path, sizeof path);
  const uint64_t room = (uint64_t)job.ranks * stripe_bytes * file_blocks + 100;
  unsigned char* got = malloc(room);
  FILE* plain = fopen(path, "rb");
  if (got == NULL || plain == NULL) refuse("fopen", path);
  const uint64_t count = fread(got, 1, room, plain);
  const int wrong = compare_file("the plain file", got, count);
  fclose(plain);
  free(got);
  return wrong;
}

static int on_any_rank(int wrong) {
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return wrong;
}

static int is_wrong(void) {
  const int file = job.has_file && verify_file();  // with collective calls
  return verify_arrays() || file;
}

static void put_window(uint64_t next) {
  static uint64_t put[cells];
  const int right = (job.rank + 1) % job.ranks;
  for (uint64_t i = 0; i < cells; i++) put[i] = value(of_window, right, next, i);
  MPI_Win_fence(0, job.window);
  MPI_Put(put, cells, MPI_UINT64_T, right, 0, cells, MPI_UINT64_T, job.window);
}

static void write_arrays(uint64_t next) {
  uint64_t* copy = perdure_working(job.copy);
  uint64_t* twin = perdure_working(job.twin);
  uint64_t* log = perdure_working(job.log);
  for (uint64_t i = 0; i < cells; i++) {
    copy[i] = value(of_copy, job.rank, next, i);
    twin[i] = value(of_twin, job.rank, next, i);
    if (i * log_blocks / cells == next % log_blocks) log[i] = log_value(next, i);
  }
}

static void write_file(uint64_t next) {
  unsigned char stripe[stripe_bytes];
  stripe_at(stripe, job.rank, next);
  const uint64_t place = next % file_blocks * (uint64_t)job.ranks + (uint64_t)job.rank;
  check_mpi(MPI_File_write_at(job.file, (MPI_Offset)(place * stripe_bytes), stripe, stripe_bytes,
                              MPI_BYTE, MPI_STATUS_IGNORE),
            "MPI_File_write_at");
  if (mix(job.seed, next) % 4 == 0) check_mpi(MPI_File_sync(job.file), "MPI_File_sync");
}

static void one_step(void) {
  const uint64_t next = job.step + 1;
  put_window(next);
  write_arrays(next);
  if (job.has_file) write_file(next);
  job.step = next;
  check_mpi(MPI_Win_fence(PERDURE_MODE_COMMIT, job.window), "the fence that commits");
  acknowledge("committed", next);
  perdure_pool_status status;
  check(perdure_status(job.pool, &status), "perdure_status");
  job.step_of_version[status.version % remembered] = next;
}

static void wait_for_levels(void) {
  uint64_t version = 0;
  const int code = perdure_levels_wait(job.pool, &version);
  if (code != PERDURE_OK) {
    fprintf(stderr, "hosts_job: rank %d: perdure_levels_wait: %s\n", job.rank,
            perdure_last_error());
  } else if (version != 0 && job.step_of_version[version % remembered] != 0) {
    acknowledge("levels", job.step_of_version[version % remembered]);
  }
}

static int is_asked_to_stop(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.stop", job.shared, job.name);
  int stop = job.rank == 0 && access(path, F_OK) == 0;
  MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return stop;
}

static int run(void) {
  acknowledge("opening", 0);
  open_all();
  if (on_any_rank(is_wrong())) return 4;
  acknowledge("restarted", job.step);
  while (!is_asked_to_stop()) {
    one_step();
    if (job.step % job.wait_every == 0) wait_for_levels();
    usleep((useconds_t)job.pace_us);
  }
  if (job.has_file) check_mpi(MPI_File_close(&job.file), "MPI_File_close");
  MPI_Win_free(&job.window);
  if (job.has_file && job.step > 0 && job.rank == 0 && verify_plain_file()) return 4;
  acknowledge("closed", job.step);
  return 0;
}

int main(int count, char** words) {
  if (count != 7 && !(count == 8 && strcmp(words[7], "file") == 0)) {
    fputs("hosts_job POOL SHARED NAME SEED WAIT_EVERY PACE_US [file]\n", stderr);
    return 2;
  }
  job.pool_path = words[1], job.shared = words[2], job.name = words[3];
  job.seed = strtoull(words[4], NULL, 0);
  job.wait_every = strtoull(words[5], NULL, 0);
  job.pace_us = strtoull(words[6], NULL, 0);
  job.has_file = count == 8;
  int given = 0;
  MPI_Init_thread(&count, &words, job.seed % 3 == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &given);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  open_acks();
  const int code = run();
  MPI_Finalize();
  return code;
}
