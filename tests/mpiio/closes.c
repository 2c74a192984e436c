// SPDX-License-Identifier: BSD-3-Clause
/* What a close waits for: meant for two ranks with every file cached, in memory or on a device that
 * survives a power failure. Counts the calls of fsync(2) that the library makes. Prints "verdict:
 * right", or where it went wrong, which ends the job with 1. */
#define _GNU_SOURCE
#include <linux/magic.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int rank, wrong, file_syncs;
static char path[600];

/* In the place of the C library's; those of directories do not count. */
__attribute__((visibility("default"))) int fsync(int fd) {
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) file_syncs++;
  return (int)syscall(SYS_fsync, fd);
}

static void expect(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s (%d calls of fsync)\n", rank, what, file_syncs);
  wrong = 1;
}

static int most_syncs(void) {
  int most = 0;
  MPI_Allreduce(&file_syncs, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static MPI_File open_by(MPI_Comm comm) {
  MPI_File file;
  MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  return file;
}

static void write_own(MPI_File file, int value) {
  MPI_File_write_at(file, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
}

static void expect_in_file(int value) {
  int seen[2] = {0, 0};
  FILE* file = fopen(path, "rb");
  expect(file != NULL && fread(seen, sizeof *seen, 2, file) == 2, "the file can be read");
  expect(seen[0] == value && seen[1] == value, "the file has what was written");
  if (file != NULL) fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The close of a program without the cache would not wait for its disk either. */
static void close_waits_only_for_a_lasting_device(int in_memory) {
  MPI_File file = open_by(MPI_COMM_WORLD);
  write_own(file, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  file_syncs = 0;
  MPI_File_close(&file);
  const int most = most_syncs();
  if (in_memory) expect(most == 0, "a close from memory does not sync");
  if (!in_memory) expect(most > 0, "a close syncs what a power failure could not have taken");
  expect_in_file(1);
}

static void sync_waits_for_the_disk(void) {
  MPI_File file = open_by(MPI_COMM_WORLD);
  write_own(file, 2);
  file_syncs = 0;
  MPI_File_sync(file);
  expect(most_syncs() > 0, "MPI_File_sync syncs");
  expect_in_file(2);
  MPI_File_close(&file);
}

/* A process that has the file open by another handle is no last one, first on the node or not. */
static void close_beside_another_handle(int with_second) {
  MPI_File all = open_by(MPI_COMM_WORLD), second = MPI_FILE_NULL;
  if (rank == with_second) second = open_by(MPI_COMM_SELF);
  write_own(all, 3);
  MPI_File_close(&all);
  if (second != MPI_FILE_NULL) {
    int seen = 0;
    MPI_File_read_at(second, 4 - rank * 4, &seen, 1, MPI_INT, MPI_STATUS_IGNORE);
    expect(seen == 3, "the handle that is left sees what the other rank wrote");
    MPI_File_close(&second);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_in_file(3);
}

int main(int argc, char** argv) {
  int any = 0;
  struct statfs place;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/closes.dat", getenv("TMPDIR"));
  const int in_memory = statfs(getenv("TMPDIR"), &place) == 0 && place.f_type == TMPFS_MAGIC;
  close_waits_only_for_a_lasting_device(in_memory);
  sync_waits_for_the_disk();
  for (int with_second = 0; with_second < 2; with_second++) {
    close_beside_another_handle(with_second);
  }
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("verdict: right\n");
  MPI_Finalize();
  return any;
}
