// SPDX-License-Identifier: BSD-3-Clause
/* Ways to a file: two ranks each open one by themselves, by different names, and see each other's
 * bytes. A child that was forked off and ends takes nothing from its parent. Two ranks, one node.
 * Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, wrong;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  wrong = 1;
}

static void write_one(MPI_File file, int value) {
  need(!MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), "write");
}

static void expect_one(MPI_File file, int value, const char* name) {
  int seen = -1;
  need(!MPI_File_read_at(file, 0, &seen, 1, MPI_INT, MPI_STATUS_IGNORE), "read");
  need(seen == value, name);
}

static void open_by(const char* name, MPI_File* file) {
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  need(!MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, file), name);
}

/* Rank 0 has the file open by its plain name. */
static void each_name_is_the_same_file(const char* plain) {
  const char* const names[] = {"place/file",  "./place/file",       "place/../place/file",
                               "place//file", "link/file",          "place/other",
                               "link/other",  "link/../place/file", "up/place/file"};
  MPI_File file;
  if (rank == 0) open_by(plain, &file);
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    if (rank == 0) write_one(file, 10 * i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      open_by(names[i], &file);
      expect_one(file, 10 * i, names[i]);
      for (int again = 0; again < 4; again++) write_one(file, 10 * i + 1);
      expect_one(file, 10 * i + 1, names[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) expect_one(file, 10 * i + 1, names[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) need(!MPI_File_close(&file), "close");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) need(!MPI_File_close(&file), "close");
}

static void a_child_that_ends_takes_nothing(const char* plain) {
  MPI_File file;
  int status = -1;
  open_by(plain, &file);
  write_one(file, 77);
  const pid_t child = fork();
  if (child == 0) exit(0);
  need(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ends");
  need(!MPI_File_sync(file), "sync after the child has ended");
  expect_one(file, 77, "what was written before the child");
  need(!MPI_File_close(&file), "close");
}

int main(int argc, char** argv) {
  char plain[600], own[620];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(chdir(getenv("TMPDIR")) == 0, "chdir");
  if (rank == 0) {
    need(!mkdir("place", 0700) && !symlink("place", "link") && !symlink("file", "place/other") &&
             !symlink("..", "place/back") && !symlink("place/back", "up"),
         "the directory and its links");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(plain, sizeof plain, "%s/place/file", getenv("TMPDIR"));
  snprintf(own, sizeof own, "%s.%d", plain, rank);
  each_name_is_the_same_file(plain);
  a_child_that_ends_takes_nothing(own);
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) puts("verdict: right");
  MPI_Finalize();
  return any;
}
