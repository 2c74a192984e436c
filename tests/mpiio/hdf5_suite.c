// SPDX-License-Identifier: BSD-3-Clause
/* A program of parallel HDF5 that knows nothing of the cache: contiguous and chunked datasets
 * written and read through hyperslabs, collectively and independently, an attribute, and all of it
 * again after the file was closed and opened anew.
 *
 *     hdf5_suite FILE
 *
 * Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { rows = 24, columns = 40 };

static int rank, ranks, wrong;

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "rank %d: %s went wrong\n", rank, what);
  wrong = 1;
}

static hid_t transfer_of(int collective) {
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  return transfer;
}

/* Every so-many-th column is a rank's: pieces of 4 bytes. */
static hid_t own_columns(hid_t dataset) {
  hid_t space = H5Dget_space(dataset);
  hsize_t start[2] = {0, (hsize_t)rank}, stride[2] = {1, (hsize_t)ranks};
  hsize_t count[2] = {rows, (hsize_t)((columns - rank + ranks - 1) / ranks)};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL);
  return space;
}

static int cell(hsize_t row, hsize_t column, int seed) {
  return (int)(row * columns + column) * 10 + seed;
}

static void fill(int* cells, int seed) {
  for (hsize_t row = 0; row < rows; ++row) {
    for (hsize_t column = (hsize_t)rank; column < columns; column += (hsize_t)ranks) {
      *cells++ = cell(row, column, seed);
    }
  }
}

static void write_dataset(hid_t file, const char* name, int chunked, int collective, int seed) {
  static int cells[rows * columns];
  hsize_t extent[2] = {rows, columns}, chunk[2] = {7, 9};
  hid_t space = H5Screate_simple(2, extent, NULL);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, 0); /* the file is to be the same in every run */
  if (chunked) H5Pset_chunk(creation, 2, chunk);
  hid_t dataset = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  check(dataset >= 0, "making a dataset");
  hid_t selected = own_columns(dataset), transfer = transfer_of(collective);
  hsize_t own = (hsize_t)H5Sget_select_npoints(selected);
  hid_t memory = H5Screate_simple(1, &own, NULL);
  fill(cells, seed);
  check(H5Dwrite(dataset, H5T_NATIVE_INT, memory, selected, transfer, cells) >= 0, "H5Dwrite");
  H5Sclose(memory), H5Pclose(transfer), H5Sclose(selected), H5Dclose(dataset);
  H5Pclose(creation), H5Sclose(space);
}

static void read_dataset(hid_t file, const char* name, int collective, int seed) {
  static int cells[rows * columns];
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), transfer = transfer_of(collective);
  check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, cells) >= 0, "H5Dread");
  int right = 1;
  for (hsize_t row = 0; row < rows; ++row) {
    for (hsize_t column = 0; column < columns; ++column) {
      right &= cells[row * columns + column] == cell(row, column, seed);
    }
  }
  check(right, name);
  H5Pclose(transfer), H5Dclose(dataset);
}

static void write_attribute(hid_t file) {
  const int value = 4711;
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(file, "answer", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
  check(H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0, "H5Awrite");
  H5Aclose(attribute), H5Sclose(space);
}

static void read_attribute(hid_t file) {
  int value = 0;
  hid_t attribute = H5Aopen(file, "answer", H5P_DEFAULT);
  check(H5Aread(attribute, H5T_NATIVE_INT, &value) >= 0 && value == 4711, "the attribute");
  H5Aclose(attribute);
}

/* What lies where must not depend on the run, so that files can be compared. */
static void write_file(const char* path, hid_t access) {
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  check(file >= 0, "H5Fcreate");
  write_dataset(file, "contiguous collective", 0, 1, 1);
  write_dataset(file, "contiguous independent", 0, 0, 2);
  write_dataset(file, "chunked collective", 1, 1, 3);
  write_dataset(file, "chunked independent", 1, 0, 4);
  write_attribute(file);
  check(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  read_dataset(file, "contiguous independent", 1, 2);
  check(H5Fclose(file) >= 0, "H5Fclose");
}

static void read_file(const char* path, unsigned mode, hid_t access) {
  hid_t file = H5Fopen(path, mode, access);
  check(file >= 0, "H5Fopen");
  for (int collective = 0; collective < 2; ++collective) {
    read_dataset(file, "contiguous collective", collective, 1);
    read_dataset(file, "contiguous independent", collective, 2);
    read_dataset(file, "chunked collective", collective, 3);
    read_dataset(file, "chunked independent", collective, 4);
  }
  read_attribute(file);
  if (mode == H5F_ACC_RDWR) write_dataset(file, "later", 1, 1, 5);
  check(H5Fclose(file) >= 0, "H5Fclose");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  write_file(argv[1], access);
  read_file(argv[1], H5F_ACC_RDWR, access);
  read_file(argv[1], H5F_ACC_RDONLY, access);
  H5Pclose(access);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
