/* SPDX-License-Identifier: BSD-3-Clause
 *
 *     bench_hdf5_divide make|take FILE EDGE independent|collective
 *
 * The same square as a dataset of parallel HDF5, of which each rank writes, or reads, its block. */
#include <hdf5.h>
#include <string.h>

#include "divide.h"

static hid_t check(hid_t handle) {
  if (handle >= 0) return handle;
  fprintf(stderr, "rank %d: HDF5 failed\n", rank);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return handle;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) return 2;
  find_block(argv[3]);
  const int makes = strcmp(argv[1], "make") == 0;
  const hsize_t square[] = {edge, edge};
  const hsize_t start[] = {first[0], first[1]}, count[] = {own[0], own[1]};
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  const hid_t file = check(makes ? H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, access)
                                 : H5Fopen(argv[2], H5F_ACC_RDONLY, access));
  const hid_t space = check(H5Screate_simple(2, square, NULL));
  const hid_t set = check(
      makes ? H5Dcreate2(file, "u", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
            : H5Dopen2(file, "u", H5P_DEFAULT));
  const hid_t memory = check(H5Screate_simple(2, count, NULL));
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  const hid_t how = check(H5Pcreate(H5P_DATASET_XFER));
  const int together = strcmp(argv[4], "collective") == 0;
  check(H5Pset_dxpl_mpio(how, together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
  double* const block = malloc(own[0] * own[1] * sizeof(double));
  int code = 0;
  if (makes) {
    fill(block);
    check(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, how, block));
  } else {
    check(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, how, block));
    volatile double sum = touch(block);
    (void)sum;
    code = report(block, begin_s, MPI_Wtime());
  }
  check(H5Dclose(set));
  check(H5Fclose(file));
  free(block);
  MPI_Finalize();
  return code;
}
