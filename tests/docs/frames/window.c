// SPDX-License-Identifier: BSD-3-Clause
// What docs/windows.md leaves out.
#include <mpi.h>
#include <perdure/perdure_mpi.h>

void run(MPI_Comm comm, MPI_Info info, MPI_Aint bytes, long iteration, long last);
void exchange_and_compute(MPI_Win win);

void run(MPI_Comm comm, MPI_Info info, MPI_Aint bytes, long iteration, long last) {
  double* base;
  MPI_Win win;
  perdure_pool* pool;
  uint64_t version;
  // snippet
}
