// SPDX-License-Identifier: BSD-3-Clause
/* A file of 64 MiB on a device of 16 MiB (PERDURE_SMALL_POOL); any ranks, with every file cached.
 * What does not fit passes through to the file, and blocks make room for others: each rank reads
 * what all have written, the file has it after MPI_File_sync and MPI_File_close, each node says so
 * once, and the report counts it. Prints "verdict: right", or where it went wrong, which ends the
 * job with 1; without the device with 77. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { mib = 1 << 20, file_bytes = 64 * mib, piece = 256 << 10 };
static int rank, ranks, wrong;
static char path[600], errors[600];
static char *expected, *seen;
static unsigned long long state = 1;

static void fail(const char* what, long at) {
  if (!wrong) printf("rank %d: %s, byte %ld\n", rank, what, at);
  wrong = 1;
}

/* The same on all ranks. */
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % below;
}

static MPI_File open_file(int amode) {
  MPI_Info hints;
  MPI_File file;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "perdure_cache", "on");
  MPI_Info_set(hints, "perdure_cache_from", "0");
  MPI_Info_set(hints, "perdure_cache_evict", "8");
  MPI_Info_set(hints, "perdure_cache_directory", getenv("PERDURE_SMALL_POOL"));
  if (MPI_File_open(MPI_COMM_WORLD, path, amode, hints, &file) != MPI_SUCCESS) {
    fail("the file can't be opened", 0);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Info_free(&hints);
  return file;
}

static void write_one(MPI_File file, int writer, long at, int bytes, unsigned value) {
  for (int i = 0; i < bytes; i++) expected[at + i] = (char)(value + (unsigned)i * 7);
  if (writer != rank) return;
  if (MPI_File_write_at(file, at, expected + at, bytes, MPI_BYTE, MPI_STATUS_IGNORE)) {
    fail("could not be written", at);
  }
}

/* Pieces in turns, then many small ones anywhere, each in a place of its rank. */
static void write_all(MPI_File file) {
  for (long at = 0; at < file_bytes; at += piece) {
    write_one(file, (int)(at / piece) % ranks, at, piece, draw(256));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 2000; i++) {
    const int bytes = i % 3 == 0 ? 8 : 1 + (int)draw(5000);
    const long place = (long)draw((unsigned)(file_bytes / 5008 / ranks)) * ranks + i % ranks;
    write_one(file, i % ranks, place * 5008, bytes, draw(256));
  }
}

static void compare(const char* what) {
  for (long at = 0; at < file_bytes; at++) {
    if (seen[at] != expected[at]) {
      fail(what, at);
      return;
    }
  }
}

static void read_all(MPI_File file, const char* what) {
  MPI_Barrier(MPI_COMM_WORLD);
  memset(seen, 1, file_bytes);
  for (long at = 0; at < file_bytes; at += 3 * mib + 11) {
    const long left = file_bytes - at, bytes = left < 3 * mib + 11 ? left : 3 * mib + 11;
    MPI_File_read_at(file, at, seen + at, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  compare(what);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void read_file(const char* what) {
  MPI_Barrier(MPI_COMM_WORLD);
  FILE* file = fopen(path, "rb");
  memset(seen, 1, file_bytes);
  if (file == NULL || fread(seen, 1, file_bytes, file) != file_bytes || fgetc(file) != EOF) {
    fail(what, file_bytes);
  }
  if (file != NULL) fclose(file);
  compare(what);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* How often a text is in a file. */
static int count(const char* name, const char* text) {
  char line[4096];
  int times = 0;
  FILE* file = fopen(name, "r");
  while (file != NULL && fgets(line, sizeof line, file)) times += strstr(line, text) != NULL;
  if (file != NULL) fclose(file);
  return times;
}

static void expect_said(void) {
  const char* variant = getenv("PERDURE_SUITE_VARIANT");
  const int nodes = strcmp(variant, "nodes") == 0 ? 2 : 1;
  char report[600];
  fflush(stderr);
  int said[3] = {count(errors, "passes through to the file"), 0, 0};
  snprintf(report, sizeof report, "%s.%d", getenv("PERDURE_CACHE_REPORT"), rank);
  said[1] = count(report, "\"passed_bytes\":0,") + (count(report, "\"passed_bytes\":") != 2);
  said[2] = count(report, "\"evicted_bytes\":") - count(report, "\"evicted_bytes\":0,");
  MPI_Allreduce(MPI_IN_PLACE, said, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (said[0] != 2 * nodes) fail("it was not said once for each node and opening", said[0]);
  if (said[2] == 0) fail("nothing was evicted", 0);
  if (said[1] != 0) fail("the report does not count what passed through", said[1]);
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (getenv("PERDURE_SMALL_POOL") == NULL) {
    if (rank == 0) puts("no device of 16 MiB can be mounted here");
    MPI_Finalize();
    return 77;
  }
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  snprintf(errors, sizeof errors, "%s/errors.%d", getenv("TMPDIR"), rank);
  if (freopen(errors, "w", stderr) == NULL) fail("no file for errors", 0);
  expected = calloc(file_bytes, 1);
  seen = malloc(file_bytes);
  file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
  write_all(file);
  read_all(file, "was not read as written");
  MPI_File_sync(file);
  read_file("is not in the file after the sync");
  MPI_File_set_size(file, 40 * mib + 5);
  memset(expected + 40 * mib + 5, 0, file_bytes - 40 * mib - 5);
  write_one(file, 0, file_bytes - 100, 100, 3);
  read_all(file, "is not zeros after it was cut off");
  write_all(file);
  MPI_File_close(&file);
  read_file("is not in the file after the close");
  file = open_file(MPI_MODE_RDWR); /* larger than the device from the begin */
  read_all(file, "was not read as it was");
  write_all(file);
  MPI_File_close(&file);
  read_file("is not in the file after the second close");
  expect_said();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
