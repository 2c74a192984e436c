/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks relax a ring of numbers by one-sided puts until it changes no more. Knows no Perdure. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  double *u, change = 1;
  int rank, ranks, rounds = 0;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Win_allocate(4 * sizeof *u, sizeof *u, MPI_INFO_NULL, MPI_COMM_WORLD, &u, &window);
  MPI_Win_fence(0, window);
  while (change > 1e-9) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    double mine = u[1];
    MPI_Put(&mine, 1, MPI_DOUBLE, left, 2, 1, MPI_DOUBLE, window);
    MPI_Put(&mine, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    u[1] = 0.9 * (u[0] + u[1] + u[2]) / 3 + rank;
    change = fabs(u[1] - mine);
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    rounds++;
  }
  if (rank == 0) printf("after %d rounds: %.6f\n", rounds, u[1]);
  MPI_Win_free(&window);
  MPI_Finalize();
}
