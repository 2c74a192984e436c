// SPDX-License-Identifier: BSD-3-Clause
/* Which accesses pay for a part (file_aside.hpp), on a file system that is memory: each rank reads
 * or writes a file of its own, and the report says whether it stood aside to its end. Prints
 * "verdict: right", or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { file_bytes = 1 << 20 };
static int rank, wrong;
static char bytes[4096];

/* Of the newest line of this rank's report. */
static int stood_aside(void) {
  char path[600], line[4096], last[4096] = "";
  snprintf(path, sizeof path, "%s.%d", getenv("PERDURE_CACHE_REPORT"), rank);
  FILE* file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file)) memcpy(last, line, sizeof last);
  if (file != NULL) fclose(file);
  return strstr(last, "\"aside\":true") != NULL;
}

static void use(int writes, int size, int times, int aside) {
  char path[600];
  MPI_Info hints;
  MPI_File file;
  snprintf(path, sizeof path, "%s/pays.%d", getenv("TMPDIR"), rank);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "perdure_cache", "on");
  MPI_Info_set(hints, "perdure_cache_from", "20");
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  int error = MPI_File_open(MPI_COMM_SELF, path, mode, hints, &file);
  MPI_Info_free(&hints);
  for (int i = 0; i < times && !error; i++) {
    const MPI_Offset at = (MPI_Offset)i * size % file_bytes;
    error = writes ? MPI_File_write_at(file, at, bytes, size, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_read_at(file, at, bytes, size, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  if (error || MPI_File_close(&file)) MPI_Abort(MPI_COMM_WORLD, 1);
  if (stood_aside() == aside) return;
  printf("rank %d: %d %s of %d bytes: aside should be %d\n", rank, times,
         writes ? "writes" : "reads", size, aside);
  wrong = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  use(1, 4096, 19, 1);
  use(1, 4096, 21, 0);
  use(0, 256, 19, 1);
  use(0, 256, 21, 0);
  use(0, 4096, 16 * 19, 1);
  use(0, 4096, 16 * 21, 0);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
