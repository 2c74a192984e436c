// SPDX-License-Identifier: BSD-3-Clause
/* plain FOLDER END: a program that knows nothing of Perdure and does not close its file,
 * FOLDER/cached: two ranks write 2000 times 4 bytes each. END is finalize or exit. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank = 0, ranks = 1;
  char path[600];
  MPI_File file;
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s/cached", argv[1]);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < 2000; i++) {
    const int cell = i * ranks + rank, value = cell + 1;
    MPI_File_write_at(file, (MPI_Offset)cell * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[2], "exit") == 0) exit(0);
  MPI_Finalize();
  return 0;
}
