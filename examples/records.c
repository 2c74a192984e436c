/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks write small records in turn into one file with MPI-IO. Knows no Perdure. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, ranks;
  char record[33];
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_File_open(MPI_COMM_WORLD, "records.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  for (int i = 0; i < 5000; i++) {
    MPI_Offset place = 32 * ((MPI_Offset)i * ranks + rank);
    snprintf(record, sizeof record, "record %8d of rank %7d\n", i, rank);
    MPI_File_write_at(file, place, record, 32, MPI_CHAR, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  MPI_Finalize();
}
