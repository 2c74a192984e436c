// SPDX-License-Identifier: BSD-3-Clause
// What docs/ranks.md leaves out of what a window says.
#include <mpi.h>

void say(MPI_Info info);

void say(MPI_Info info) {
  // snippet
}
