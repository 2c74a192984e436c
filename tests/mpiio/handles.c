// SPDX-License-Identifier: BSD-3-Clause
/* Two handles of a cached file, one of all ranks and one of each alone, which end in turn: who has
 * closed its own keeps serving who has not, and the file can be opened again. Any ranks and nodes.
 * Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ints = 40000 };
static int rank, ranks, wrong;
static int numbers[ints];

static void expect(int code, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
  wrong = 1;
}

/* All of the file through a handle of one rank. */
static void write_all(MPI_File file, int seed) {
  for (int i = 0; i < ints; i++) numbers[i] = seed + i;
  expect(MPI_File_write_at(file, 0, numbers, ints, MPI_INT, MPI_STATUS_IGNORE), "write_at");
}

static void expect_all(MPI_File file, int seed, const char* what) {
  int different = 0;
  expect(MPI_File_read_at(file, 0, numbers, ints, MPI_INT, MPI_STATUS_IGNORE), "read_at");
  for (int i = 0; i < ints; i++) different += numbers[i] != seed + i;
  if (different == 0) return;
  fprintf(stderr, "rank %d: %s: %d ints are wrong\n", rank, what, different);
  wrong = 1;
}

/* What is in the file itself, when a handle of one rank was closed. */
static void expect_written_back(const char* path, int seed) {
  FILE* file = fopen(path, "rb");
  int different = 0;
  if (fread(numbers, sizeof(int), ints, file) != ints) different = ints;
  for (int i = 0; i < ints; i++) different += numbers[i] != seed + i;
  fclose(file);
  if (different == 0) return;
  fprintf(stderr, "rank %d: after its close %d ints are not in the file\n", rank, different);
  wrong = 1;
}

static void close_in_turn(const char* path) {
  MPI_File all, own;
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  expect(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &all), "open");
  expect(MPI_File_open(MPI_COMM_SELF, path, mode, MPI_INFO_NULL, &own), "open alone");
  expect(MPI_File_close(&all), "close");
  for (int turn = 0; turn < ranks; turn++) {
    if (turn == rank) {
      if (turn > 0) expect_all(own, turn - 1, "what the rank before wrote");
      write_all(own, turn);
      expect(MPI_File_close(&own), "close alone");
      expect_written_back(path, turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char path[600];
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  for (int round = 0; round < 3; round++) {
    MPI_File file;
    close_in_turn(path);
    expect(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file), "reopen");
    expect_all(file, ranks - 1, "in the file that was opened again");
    expect(MPI_File_close(&file), "close of the file that was opened again");
  }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) puts("verdict: right");
  MPI_Finalize();
  return any;
}
