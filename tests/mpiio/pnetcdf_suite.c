// SPDX-License-Identifier: BSD-3-Clause
/* A program of PnetCDF that knows nothing of the cache: fixed and record variables, written and
 * read in pieces, collectively, independently and by the nonblocking calls, attributes, and all of
 * it again after the file was closed and opened anew.
 *
 *     pnetcdf_suite FILE
 *
 * Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { rows = 10, columns = 12, variables = 3 };

static int rank, ranks, wrong;

static void check(int code, const char* what) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(code));
  wrong = 1;
}

static int cell(MPI_Offset row, MPI_Offset column, int variable) {
  return (int)(row * columns + column) * 10 + variable;
}

static void define(int file, int* ids) {
  int dimensions[2], fixed;
  check(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]), "def_dim");
  check(ncmpi_def_dim(file, "x", columns, &dimensions[1]), "def_dim");
  check(ncmpi_def_dim(file, "y", rows, &fixed), "def_dim");
  check(ncmpi_def_var(file, "record", NC_INT, 2, dimensions, &ids[0]), "def_var");
  check(ncmpi_def_var(file, "second", NC_INT, 2, dimensions, &ids[1]), "def_var");
  dimensions[0] = fixed;
  check(ncmpi_def_var(file, "fixed", NC_INT, 2, dimensions, &ids[2]), "def_var");
  check(ncmpi_put_att_text(file, NC_GLOBAL, "title", 5, "cache"), "put_att");
  check(ncmpi_enddef(file), "enddef");
}

/* Every so-many-th column is a rank's. */
static void own_columns(MPI_Offset* start, MPI_Offset* count, MPI_Offset* stride) {
  start[0] = 0, count[0] = rows, stride[0] = 1;
  start[1] = rank, count[1] = (columns - rank + ranks - 1) / ranks, stride[1] = ranks;
}

static void write_all(int file, const int* ids) {
  static int cells[variables][rows * columns];
  MPI_Offset start[2], count[2], stride[2];
  own_columns(start, count, stride);
  for (int variable = 0; variable < variables; ++variable) {
    int* next = cells[variable];
    for (MPI_Offset row = 0; row < rows; ++row) {
      for (MPI_Offset i = 0; i < count[1]; ++i) *next++ = cell(row, rank + i * ranks, variable);
    }
  }
  int request, status;
  check(ncmpi_put_vars_int_all(file, ids[0], start, count, stride, cells[0]), "put_all");
  check(ncmpi_iput_vars_int(file, ids[1], start, count, stride, cells[1], &request), "iput");
  check(ncmpi_wait_all(file, 1, &request, &status), "wait_all");
  check(ncmpi_begin_indep_data(file), "begin_indep_data");
  check(ncmpi_put_vars_int(file, ids[2], start, count, stride, cells[2]), "put");
  check(ncmpi_end_indep_data(file), "end_indep_data");
  check(ncmpi_sync(file), "sync");
}

static void read_all(int file) {
  static const char* const names[variables] = {"record", "second", "fixed"};
  int cells[rows * columns];
  const MPI_Offset start[2] = {0, 0}, count[2] = {rows, columns};
  for (int variable = 0; variable < variables; ++variable) {
    int id, right = 1;
    check(ncmpi_inq_varid(file, names[variable], &id), "inq_varid");
    check(ncmpi_get_vara_int_all(file, id, start, count, cells), "get_all");
    for (MPI_Offset i = 0; i < rows * columns; ++i) {
      right &= cells[i] == cell(i / columns, i % columns, variable);
    }
    if (!right) fprintf(stderr, "rank %d: %s has wrong cells\n", rank, names[variable]);
    wrong |= !right;
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info hints;
  MPI_Info_create(&hints);
  /* From 1.15 on PnetCDF has a driver of its own, which calls no MPI_File function. */
  MPI_Info_set(hints, "nc_driver", "mpiio");
  int file, ids[variables];
  check(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, hints, &file), "create");
  define(file, ids);
  write_all(file, ids);
  check(ncmpi_close(file), "close");
  check(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, hints, &file), "open");
  read_all(file);
  check(ncmpi_close(file), "close");
  MPI_Info_free(&hints);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
