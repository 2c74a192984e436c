/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat along a rod in as many pieces as ranks, with a version in a pool every 50 steps. */
#include <mpi.h>
#include <perdure/perdure_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1000, STEPS = 400 };

static double u[CELLS + 2];
static long step = 0;
static int rank, ranks;
static perdure_pool* pool;

static void heat_step(void) {
  static double next[CELLS + 2];
  int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  int right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  u[0] = rank == 0 ? 1 : 0;
  MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 0, &u[CELLS + 1], 1, MPI_DOUBLE, right, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&u[CELLS], 1, MPI_DOUBLE, right, 1, &u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 1; i <= CELLS; i++) next[i] = (u[i - 1] + u[i] + u[i + 1]) / 3;
  memcpy(&u[1], &next[1], CELLS * sizeof(double));
}

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void checkpoint(void) {
  check(perdure_commit(pool, NULL));
}

static void restart(void) {
  uint64_t cells = CELLS + 2, version;
  perdure_array* array;
  perdure_array_options mine = {.buffer = u};
  check(perdure_open_mpi(MPI_COMM_WORLD, "pool", NULL, &pool));
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, &mine, &array));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_restart(pool, &version));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  restart();
  if (rank == 0) fprintf(stderr, "begins at step %ld\n", step);
  while (step < STEPS) {
    heat_step();
    step++;
    if (step % 50 == 0) checkpoint();
  }
  if (rank == 0) printf("u[10] is %.17g\n", u[11]);
  check(perdure_close(pool));
  MPI_Finalize();
}
