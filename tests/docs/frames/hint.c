// SPDX-License-Identifier: BSD-3-Clause
// What docs/cache.md leaves out.
#include <mpi.h>

void hint(MPI_Info info);

void hint(MPI_Info info) {
  // snippet
}
