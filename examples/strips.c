/* SPDX-License-Identifier: BSD-3-Clause */
/* A grid in strips and a list of particles, over any number of ranks. usage: strips POOL STEPS */
#include <mpi.h>
#include <perdure/perdure_mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 61, COLUMNS = 40, PARTICLES = 203, OLD_RANKS_MAX = 1024 };

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of `whole`, what `rank` begins with. */
static uint64_t begin_of(uint64_t whole, int rank, int ranks) {
  return whole * (uint64_t)rank / (uint64_t)ranks;
}

static perdure_array* open_list(perdure_pool* pool, uint64_t mine) {
  perdure_array* p;
  perdure_array_options list = {.ranks = PERDURE_ROWS}; /* one list over all ranks */
  if (perdure_stored_shape(pool, "p", PERDURE_ROWS, NULL, NULL) == PERDURE_OK) {
    check(perdure_array_open(pool, "p", PERDURE_DOUBLE, 0, NULL, PERDURE_COPY, &list, &p));
  } else { /* a new pool */
    check(perdure_array_open(pool, "p", PERDURE_DOUBLE, 1, &mine, PERDURE_COPY, &list, &p));
  }
  return p;
}

static void print_old_counts(perdure_pool* pool) {
  int64_t counts[OLD_RANKS_MAX];
  perdure_pool_status status;
  check(perdure_status(pool, &status)); /* status.old_ranks made the pool */
  for (unsigned old = 0; old < status.old_ranks; old++)
    check(perdure_read(pool, "count", old, 0, 1, &counts[old]));
  for (unsigned old = 0; old < status.old_ranks; old++)
    printf("old rank %u had %lld lines\n", old, (long long)counts[old]);
}

int main(int argc, char** argv) {
  int rank, ranks;
  uint64_t step = 0, version = 0, rows = 0;
  perdure_pool* pool;
  perdure_pool_status status;
  perdure_array *u, *p, *count;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* path = argv[1];
  const uint64_t steps = strtoull(argv[2], NULL, 10);

  perdure_options options = {.flags = PERDURE_ANY_RANKS};
  check(perdure_open_mpi(MPI_COMM_WORLD, path, &options, &pool));

  const uint64_t global_shape[] = {LINES, COLUMNS}, my_first[] = {begin_of(LINES, rank, ranks), 0};
  const uint64_t my_shape[] = {begin_of(LINES, rank + 1, ranks) - my_first[0], COLUMNS};
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 2, my_shape, PERDURE_COPY, NULL, &u));
  check(perdure_array_box(u, global_shape, my_first)); /* my part of a grid */
  p = open_list(pool, begin_of(PARTICLES, rank + 1, ranks) - begin_of(PARTICLES, rank, ranks));

  const uint64_t one = 1;
  perdure_array_options by_hand = {.ranks = PERDURE_BY_HAND};
  check(perdure_array_open(pool, "count", PERDURE_INT64, 1, &one, PERDURE_COPY, &by_hand, &count));
  check(perdure_scalar(pool, "step", &step, sizeof step));

  check(perdure_restart(pool, &version)); /* divided anew */
  check(perdure_status(pool, &status));
  if (rank == 0 && version != 0 && status.old_ranks != (unsigned)ranks) print_old_counts(pool);
  if (rank == 0) printf("begins at step %llu\n", (unsigned long long)step);

  check(perdure_array_shape(p, NULL, &rows));
  for (; step < steps;) {
    double *cells = perdure_working(u), *places = perdure_working(p);
    for (uint64_t i = 0; i < my_shape[0] * COLUMNS; i++)
      cells[i] += (double)(my_first[0] * COLUMNS + i);
    for (uint64_t i = 0; i < rows; i++) places[i] += 1;
    *(int64_t*)perdure_working(count) = (int64_t)my_shape[0];
    step++;
    check(perdure_commit(pool, NULL));
  }

  double mine[2] = {0, 0}, all[2];
  for (uint64_t i = 0; i < my_shape[0] * COLUMNS; i++) mine[0] += ((double*)perdure_working(u))[i];
  for (uint64_t i = 0; i < rows; i++) mine[1] += ((double*)perdure_working(p))[i];
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("u %.0f, p %.0f\n", all[0], all[1]);
  check(perdure_close(pool));
  MPI_Finalize();
}
