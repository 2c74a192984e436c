/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat along a rod in as many pieces as ranks, with a checkpoint every 50 steps: a file a rank. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 1000, STEPS = 400 };

static double u[CELLS + 2];
static long step = 0;
static int rank, ranks;

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

static void name_of(char name[40], const char* ending) {
  snprintf(name, 40, "u-%d%s", rank, ending);
}

static void checkpoint(void) {
  char name[40], target[40];
  name_of(name, ".new");
  name_of(target, ".ckpt");
  FILE* file = fopen(name, "w");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  fwrite(&step, sizeof step, 1, file);
  fwrite(u, sizeof u, 1, file);
  if (fclose(file) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  rename(name, target);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void restart(void) {
  char name[40];
  name_of(name, ".ckpt");
  FILE* file = fopen(name, "r");
  if (file == NULL) return;
  if (fread(&step, sizeof step, 1, file) != 1 || fread(u, sizeof u, 1, file) != 1)
    MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
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
  MPI_Finalize();
}
