// SPDX-License-Identifier: BSD-3-Clause
//
// A program of parallel HDF5 that knows nothing of Perdure: each rank writes the rows of its
// particles, scattered over one dataset, reads those of the next rank, and flushes the file.
//
//     h5pcc -O2 -o hdf5_particles examples/hdf5_particles.c
//     mpiexec -n 4 ./hdf5_particles out.h5
//     perdure run --cache '*.h5' -- mpiexec -n 4 ./hdf5_particles out.h5
//
// Rank 0 prints the milliseconds of each phase, and of all from opening to having closed.
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 3, rows_of_rank = 20000, columns = 4 };

static int rank, ranks;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s went wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Rows of a rank: every so-many-th one, in an order that jumps.
static hsize_t row_of(int of_rank, int index) {
  return (hsize_t)(index * 1229 % rows_of_rank) * (hsize_t)ranks + (hsize_t)of_rank;
}

static double value_of(hsize_t row, int column, int step) {
  return (double)row * columns + column + 1e-3 * step;
}

static void select_row(hid_t space, hsize_t row) {
  const hsize_t start[2] = {row, 0}, count[2] = {1, columns};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
}

static void write_rows(hid_t dataset, hid_t space, hid_t one_row, int step) {
  for (int i = 0; i < rows_of_rank; i++) {
    const hsize_t row = row_of(rank, i);
    double cells[columns];
    for (int column = 0; column < columns; column++) cells[column] = value_of(row, column, step);
    select_row(space, row);
    need(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, one_row, space, H5P_DEFAULT, cells) >= 0, "H5Dwrite");
  }
}

static void read_rows(hid_t dataset, hid_t space, hid_t one_row, int step) {
  for (int i = 0; i < rows_of_rank; i++) {
    const hsize_t row = row_of((rank + 1) % ranks, i);
    double cells[columns];
    select_row(space, row);
    need(H5Dread(dataset, H5T_NATIVE_DOUBLE, one_row, space, H5P_DEFAULT, cells) >= 0, "H5Dread");
    need(cells[columns - 1] == value_of(row, columns - 1, step), "what was read");
  }
}

static double since(double* last) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double now = MPI_Wtime(), spent = now - *last;
  *last = now;
  return spent * 1e3;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  need(argc == 2, "hdf5_particles FILE: the arguments");
  double last = MPI_Wtime(), written = 0, read = 0, flushed = 0;
  const double began = last;
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  need(file >= 0, "H5Fcreate");
  const hsize_t extent[2] = {(hsize_t)ranks * rows_of_rank, columns}, row[2] = {1, columns};
  hid_t space = H5Screate_simple(2, extent, NULL), one_row = H5Screate_simple(2, row, NULL);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, 0);  // the file is the same in every run
  hid_t dataset =
      H5Dcreate2(file, "particles", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  need(dataset >= 0, "H5Dcreate2");
  (void)since(&last);
  for (int step = 1; step <= steps; step++) {
    write_rows(dataset, space, one_row, step);
    written += since(&last);
    read_rows(dataset, space, one_row, step);
    read += since(&last);
    need(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
    flushed += since(&last);
  }
  H5Dclose(dataset), H5Sclose(space), H5Sclose(one_row), H5Pclose(creation), H5Pclose(access);
  need(H5Fclose(file) >= 0, "H5Fclose");
  (void)since(&last);
  if (rank == 0) {
    printf("writes %.1f ms, reads %.1f ms, flushes %.1f ms, all %.1f ms\n", written, read, flushed,
           (last - began) * 1e3);
  }
  MPI_Finalize();
  return 0;
}
