// SPDX-License-Identifier: BSD-3-Clause
//
// A program of PnetCDF that knows nothing of Perdure: each rank writes the rows of its particles,
// which lie scattered in one variable, reads those of the next rank, and synchronises the file.
//
//     mpicc -O2 -o pnetcdf_particles examples/pnetcdf_particles.c -lpnetcdf
//     mpiexec -n 4 ./pnetcdf_particles out.nc
//     perdure run --cache '*.nc' -- mpiexec -n 4 ./pnetcdf_particles out.nc
//
// Rank 0 prints the milliseconds of each phase, and of all from opening to having closed.
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { steps = 3, rows_of_rank = 20000, columns = 4 };

static int rank, ranks;

static void need(int error, const char* what) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(error));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Rows of a rank: every so-many-th one, in an order that jumps.
static MPI_Offset row_of(int of_rank, int index) {
  return (MPI_Offset)(index * 1229 % rows_of_rank) * ranks + of_rank;
}

static double value_of(MPI_Offset row, int column, int step) {
  return (double)row * columns + column + 1e-3 * step;
}

static void write_rows(int file, int variable, int step) {
  for (int i = 0; i < rows_of_rank; i++) {
    const MPI_Offset start[2] = {row_of(rank, i), 0}, count[2] = {1, columns};
    double cells[columns];
    for (int column = 0; column < columns; column++) {
      cells[column] = value_of(start[0], column, step);
    }
    need(ncmpi_put_vara_double(file, variable, start, count, cells), "put");
  }
}

static void read_rows(int file, int variable, int step) {
  for (int i = 0; i < rows_of_rank; i++) {
    const MPI_Offset start[2] = {row_of((rank + 1) % ranks, i), 0}, count[2] = {1, columns};
    double cells[columns];
    need(ncmpi_get_vara_double(file, variable, start, count, cells), "get");
    need(cells[columns - 1] == value_of(start[0], columns - 1, step) ? NC_NOERR : NC_EINVAL,
         "what was read");
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
  need(argc == 2 ? NC_NOERR : NC_EINVAL, "pnetcdf_particles FILE: the arguments");
  double last = MPI_Wtime(), written = 0, read = 0, flushed = 0;
  const double began = last;
  int file, dimensions[2], variable;
  need(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file),
       "create");
  need(ncmpi_def_dim(file, "row", (MPI_Offset)ranks * rows_of_rank, &dimensions[0]), "def_dim");
  need(ncmpi_def_dim(file, "column", columns, &dimensions[1]), "def_dim");
  need(ncmpi_def_var(file, "particles", NC_DOUBLE, 2, dimensions, &variable), "def_var");
  need(ncmpi_enddef(file), "enddef");
  need(ncmpi_begin_indep_data(file), "begin_indep_data");
  (void)since(&last);
  for (int step = 1; step <= steps; step++) {
    write_rows(file, variable, step);
    written += since(&last);
    read_rows(file, variable, step);
    read += since(&last);
    need(ncmpi_sync(file), "sync");
    flushed += since(&last);
  }
  need(ncmpi_end_indep_data(file), "end_indep_data");
  need(ncmpi_close(file), "close");
  (void)since(&last);
  if (rank == 0) {
    printf("writes %.1f ms, reads %.1f ms, flushes %.1f ms, all %.1f ms\n", written, read, flushed,
           (last - began) * 1e3);
  }
  MPI_Finalize();
  return 0;
}
