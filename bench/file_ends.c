// SPDX-License-Identifier: BSD-3-Clause
//
// What the two ends of a file cost, in a program that knows nothing of Perdure:
//
//     file_ends STEM FILES BYTES all     the ranks open each file together, and each writes BYTES
//     file_ends STEM FILES BYTES self    each rank has files of its own, of BYTES
//
// A fifth argument, idle:MS or busy:MS, has them wait or compute for so long before each close.
//
// Opens STEM.0, STEM.1, … after each other, writes and closes them, and removes them afterwards.
// Rank 0 prints a line for each part of the slowest rank: "open", "write" and "close" with the sum
// in nanoseconds, and "whole" for all of it.
#include <stdlib.h>
#include <string.h>

#include "this_rank.h"

enum { OPEN, WRITE, CLOSE, WHOLE, PARTS };
static const char* const names[PARTS] = {"open", "write", "close", "whole"};

static void path_of(char (*path)[4096], const char* stem, int own, int number) {
  if (own) {
    snprintf(*path, sizeof *path, "%s.%d.%d", stem, rank, number);
  } else {
    snprintf(*path, sizeof *path, "%s.%d", stem, number);
  }
}

static void pass_time(const char* how) {
  if (how == NULL) return;
  const int64_t until_ns = now_ns() + strtoll(how + strlen("idle:"), NULL, 10) * 1000000;
  while (now_ns() < until_ns) {
    const struct timespec some = {0, 10000000};
    if (strncmp(how, "idle:", strlen("idle:")) == 0) nanosleep(&some, NULL);
  }
}

static void take_one(const char* path, MPI_Comm comm, const char* bytes, size_t count,
                     const char* pause, int64_t (*spent)[PARTS]) {
  MPI_File file;
  const MPI_Offset at = comm == MPI_COMM_SELF ? 0 : (MPI_Offset)count * rank;
  const int64_t began_ns = now_ns();
  need(!MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  const int64_t open_ns = now_ns();
  need(!MPI_File_write_at(file, at, bytes, (int)count, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  int64_t written_ns = now_ns();
  const int64_t written_in_ns = written_ns - open_ns;
  pass_time(pause);
  if (pause != NULL) MPI_Barrier(MPI_COMM_WORLD);
  written_ns = now_ns();
  need(!MPI_File_close(&file), "close");
  const int64_t closed_ns = now_ns();
  (*spent)[OPEN] += open_ns - began_ns;
  (*spent)[WRITE] += written_in_ns;
  (*spent)[CLOSE] += closed_ns - written_ns;
  (*spent)[WHOLE] += closed_ns - began_ns;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(argc == 5 || argc == 6, "arguments: STEM FILES BYTES all|self [idle:MS|busy:MS]");
  const char* pause = argc == 6 ? argv[5] : NULL;
  const int files = atoi(argv[2]);
  const size_t count = strtoull(argv[3], NULL, 10);
  const int own = strcmp(argv[4], "self") == 0;
  char* bytes = malloc(count);
  need(bytes != NULL, "memory");
  memset(bytes, rank + 1, count);
  int64_t spent[PARTS] = {0}, slowest[PARTS];
  char path[4096];
  for (int number = 0; number < files; number++) {
    path_of(&path, argv[1], own, number);
    if (!own) MPI_Barrier(MPI_COMM_WORLD);
    take_one(path, own ? MPI_COMM_SELF : MPI_COMM_WORLD, bytes, count, pause, &spent);
  }
  MPI_Reduce(spent, slowest, PARTS, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int part = 0; rank == 0 && part < PARTS; part++) {
    printf("%s %lld\n", names[part], (long long)slowest[part]);
  }
  for (int number = 0; number < files && (own || rank == 0); number++) {
    path_of(&path, argv[1], own, number);
    remove(path);
  }
  free(bytes);
  MPI_Finalize();
  return 0;
}
