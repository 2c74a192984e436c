// SPDX-License-Identifier: BSD-3-Clause
//
// A program that was written for VELOC: heat in a rod, with the particles that fall off its end, so
// that one region grows. It includes and links nothing of Perdure but VELOC's interface.
//
//     heat CONFIG ITERATIONS INTERVAL [leave]
//
// "leave": it ends without VELOC_Finalize.
// Rank 0 prints where it begins, "at ITERATION" when a version was made, and the answer.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <veloc.h>

enum { cells = 20000, step_id = 0, cells_id = 1, count_id = 2, fallen_id = 3 };

static int rank, ranks;

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

// One iteration; what falls off the end of each rank's part is noted in `fallen`.
static void advance(double* now, double* next, int step, double* fallen, int* count) {
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(&now[cells], 1, MPI_DOUBLE, right, 0, &now[0], 1, MPI_DOUBLE, left, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 1, &now[cells + 1], 1, MPI_DOUBLE, right, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) now[0] = 1;
  for (int i = 1; i <= cells; i++) next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
  memcpy(&now[1], &next[1], cells * sizeof *now);
  for (int i = 0; i <= rank; i++) fallen[(*count)++] = now[1 + i] * step;  // ranks differ
}

// The sizes come first, then what has these sizes.
static void restart(int version, int* count, double** fallen, int room) {
  need(VELOC_Restart_begin("heat", version) == VELOC_SUCCESS, "Restart_begin");
  int first[] = {step_id, count_id};
  need(VELOC_Recover_selective(VELOC_RECOVER_SOME, first, 2) == VELOC_SUCCESS, "Recover sizes");
  need(*count <= room && VELOC_Recover_size(fallen_id) == *count * (int)sizeof(double), "count");
  VELOC_Mem_protect(fallen_id, *fallen, (size_t)*count, sizeof(double));
  need(VELOC_Recover_selective(VELOC_RECOVER_REST, first, 2) == VELOC_SUCCESS, "Recover rest");
  need(VELOC_Restart_end(1) == VELOC_SUCCESS, "Restart_end");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  need((argc == 4 || argc == 5) && VELOC_Init(MPI_COMM_WORLD, argv[1]) == VELOC_SUCCESS, "Init");
  const int iterations = atoi(argv[2]), interval = atoi(argv[3]);
  const int room = (iterations + 1) * ranks;
  double* now = calloc(cells + 2, sizeof *now);
  double* next = calloc(cells + 2, sizeof *next);
  double* fallen = calloc((size_t)room, sizeof *fallen);
  int step = 0, count = 0;
  VELOC_Mem_protect(step_id, &step, 1, sizeof step);
  VELOC_Mem_protect(cells_id, now, cells + 2, sizeof *now);
  VELOC_Mem_protect(count_id, &count, 1, sizeof count);
  const int version = VELOC_Restart_test("heat", 0);
  if (version > 0) restart(version, &count, &fallen, room);
  need(version <= 0 || version == step, "the version's iteration");
  if (rank == 0) printf("begins at %d\n", step), fflush(stdout);
  while (step < iterations) {
    advance(now, next, step, fallen, &count);
    step++;
    if (step % interval != 0) continue;
    VELOC_Mem_protect(fallen_id, fallen, (size_t)count, sizeof *fallen);  // larger than before
    need(VELOC_Checkpoint_wait() == VELOC_SUCCESS, "Checkpoint_wait");
    need(VELOC_Checkpoint("heat", step) == VELOC_SUCCESS, "Checkpoint");
    if (rank == 0) printf("at %d\n", step), fflush(stdout);
  }
  double here = 0, all = 0;
  for (int i = 1; i <= cells; i++) here += now[i] * i;
  for (int i = 0; i < count; i++) here += fallen[i] / (i + 1);
  MPI_Reduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("answer %.17g of %d\n", all, count);
  need(argc == 5 || VELOC_Finalize(1) == VELOC_SUCCESS, "Finalize");
  free(now), free(next), free(fallen);
  MPI_Finalize();
  return 0;
}
