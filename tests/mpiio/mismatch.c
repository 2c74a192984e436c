/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls of a cached file that do not belong together; for two ranks. Both get an error,
 * nobody waits, and the file is what it was: no call of a pair was made. Prints "verdict: right",
 * or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, wrong;
static MPI_File file;

static int cut(void) {
  return MPI_File_set_size(file, 0);
}
static int grow(void) {
  return MPI_File_preallocate(file, 4096);
}
static int be_atomic(void) {
  return MPI_File_set_atomicity(file, 1);
}
static int seek(void) {
  return MPI_File_seek_shared(file, 8, MPI_SEEK_SET);
}
static int view(void) {
  return MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}
static int hint(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_cache_ack", "durable");
  const int code = MPI_File_set_info(file, info);
  MPI_Info_free(&info);
  return code;
}

static const struct call {
  const char* name;
  int (*make)(void);
} calls[] = {{"MPI_File_set_size", cut},
             {"MPI_File_preallocate", grow},
             {"MPI_File_set_atomicity", be_atomic},
             {"MPI_File_seek_shared", seek},
             {"MPI_File_set_view", view},
             {"MPI_File_set_info", hint}};
enum { call_count = sizeof calls / sizeof calls[0] };

static void expect(int right, const char* one, const char* other, const char* what) {
  if (right) return;
  fprintf(stderr, "rank %d: %s meets %s: %s\n", rank, one, other, what);
  wrong = 1;
}

static void meet(const struct call* one, const struct call* other) {
  int seen[2] = {0, 0}, atomic = 1;
  MPI_Offset size = 0, at = -1;
  const int code = rank == 0 ? one->make() : other->make();
  expect(code != MPI_SUCCESS, one->name, other->name, "no error");
  expect(MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 8, one->name, other->name,
         "another size");
  MPI_File_get_atomicity(file, &atomic);
  expect(!atomic, one->name, other->name, "atomic");
  MPI_File_get_position_shared(file, &at);
  expect(at == 0, one->name, other->name, "another shared position");
  MPI_File_read_at_all(file, 0, seen, 2, MPI_INT, MPI_STATUS_IGNORE);
  expect(seen[0] == 70 && seen[1] == 71, one->name, other->name, "other bytes");
}

int main(int argc, char** argv) {
  char path[600];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
      MPI_SUCCESS) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int value = 70 + rank;
  MPI_File_write_at_all(file, (MPI_Offset)4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int one = 0; one < call_count; one++) {
    for (int other = 0; other < call_count; other++) {
      if (one != other) meet(&calls[one], &calls[other]);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  expect(cut() == MPI_SUCCESS, "MPI_File_set_size", "itself", "an error");
  MPI_File_close(&file);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("verdict: %s\n", all ? "wrong" : "right");
  MPI_Finalize();
  return all;
}
