// SPDX-License-Identifier: BSD-3-Clause
// What docs/cache.md leaves out.
#include <mpi.h>
#include <perdure/perdure_mpi.h>

void run(MPI_Comm comm, MPI_Info info, MPI_Info hints, MPI_Aint bytes, int step, int last);
void compute(double* base);
void append(MPI_File file);

void run(MPI_Comm comm, MPI_Info info, MPI_Info hints, MPI_Aint bytes, int step, int last) {
  double* base;
  MPI_Win win;
  MPI_File file;
  // snippet
}
