// SPDX-License-Identifier: BSD-3-Clause
/* Sizes of files that are cached, where the MPI libraries themselves do not agree; any ranks, with
 * every file cached. Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { bytes = 3000 };
static int rank, wrong;
static char path[600];

static void expect(long seen, long wanted, const char* what) {
  if (seen == wanted) return;
  fprintf(stderr, "rank %d: %s: %ld instead of %ld\n", rank, what, seen, wanted);
  wrong = 1;
}

static char byte_at(long at) {
  return (char)(at * 7 + 3);
}

static void make_file(void) {
  if (rank == 0) {
    FILE* file = fopen(path, "wb");
    for (long at = 0; at < bytes; at++) fputc(byte_at(at), file);
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The file has so many bytes, the first as they were made. */
static void expect_file(long size, const char* what) {
  MPI_Barrier(MPI_COMM_WORLD);
  struct stat status;
  long different = 0;
  FILE* file = fopen(path, "rb");
  expect(stat(path, &status), 0, what);
  expect((long)status.st_size, size, what);
  for (long at = 0; at < bytes && at < size; at++) different += (char)fgetc(file) != byte_at(at);
  expect(different, 0, "bytes that are not what they were");
  fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* OMPIO reads and writes what is to be allocated by the handle's own pointer, which moves. */
static void preallocate(MPI_Offset wanted) {
  MPI_File file;
  MPI_Offset size = -1, position = -1;
  make_file();
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_preallocate(file, wanted);
  MPI_File_get_size(file, &size);
  MPI_File_get_position(file, &position);
  expect((long)size, wanted < bytes ? bytes : (long)wanted, "size after MPI_File_preallocate");
  expect((long)position, 0, "position after MPI_File_preallocate");
  MPI_File_close(&file);
  expect_file((long)size, "size of the file that was preallocated");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  preallocate(bytes / 2);
  preallocate(bytes);
  preallocate(3 * bytes);
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("verdict: %s\n", any ? "wrong" : "right");
  MPI_Finalize();
  return any;
}
