/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that goes on with whatever number of ranks it gets:
 *
 *     divide POOL STEPS [KILL_RANK KILL_US]
 *
 * It has a grid of which each rank has some lines and a line of its neighbours on both sides, a
 * list of particles over all ranks, a table that is the same on all, and a count by hand. What they
 * hold is a function of the step. */
#include "ranks_job.h"

enum { LINES = 61, COLUMNS = 40, PARTICLES = 203, TABLE = 17 };

static uint64_t first, lines, owned_first, owned, particles, first_particle;
static perdure_array *grid, *list, *table, *count;

static void divide_grid(void) {
  owned = LINES / (uint64_t)ranks + ((uint64_t)rank < LINES % (uint64_t)ranks);
  owned_first = 0;
  for (int r = 0; r < rank; r++) owned_first += LINES / ranks + (r < LINES % ranks);
  first = owned_first == 0 ? 0 : owned_first - 1;
  const uint64_t end = owned_first + owned + (owned_first + owned < LINES);
  lines = end - first;
}

static void open_arrays(perdure_pool* pool) {
  const uint64_t shape[] = {lines, COLUMNS}, place[] = {first, 0};
  const uint64_t global_shape[] = {LINES, COLUMNS};
  check(perdure_array_open(pool, "grid", PERDURE_DOUBLE, 2, shape, PERDURE_TWIN, NULL, &grid));
  check(perdure_array_box(grid, global_shape, place));

  perdure_array_options options = {.ranks = PERDURE_ROWS};
  uint64_t held[8] = {PARTICLES / (uint64_t)ranks + ((uint64_t)rank < PARTICLES % (uint64_t)ranks),
                      3};
  const int code = perdure_stored_shape(pool, "list", PERDURE_ROWS, NULL, held);
  if (code != PERDURE_E_NOT_FOUND) check(code);
  particles = held[0];
  check(perdure_array_open(pool, "list", PERDURE_DOUBLE, 2, held, PERDURE_COPY, &options, &list));
  MPI_Exscan(&particles, &first_particle, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) first_particle = 0;

  options.ranks = PERDURE_SAME;
  const uint64_t same = TABLE, one = 1;
  check(perdure_array_open(pool, "table", PERDURE_DOUBLE, 1, &same, PERDURE_LOG, &options, &table));
  options.ranks = PERDURE_BY_HAND;
  check(perdure_array_open(pool, "count", PERDURE_INT64, 1, &one, PERDURE_COPY, &options, &count));
  check(perdure_scalar(pool, "step", &step, sizeof step));
}

static void store(uint64_t at) {
  double* cells = perdure_working(grid);
  for (uint64_t i = 0; i < lines * COLUMNS; i++) cells[i] = value(1, first * COLUMNS + i, at);
  double* places = perdure_working(list);
  for (uint64_t i = 0; i < 3 * particles; i++) places[i] = value(2, 3 * first_particle + i, at);
  double* entries = perdure_working(table);
  for (uint64_t i = 0; i < TABLE; i++) entries[i] = value(3, i, at);
  *(int64_t*)perdure_working(count) = (int64_t)owned;
  step = at;
}

static void judge_all(void) {
  const double* cells = perdure_consistent(grid);
  for (uint64_t i = 0; i < lines * COLUMNS; i++) {
    judge(cells[i] == value(1, first * COLUMNS + i, step), "grid");
  }
  const double* places = perdure_consistent(list);
  for (uint64_t i = 0; i < 3 * particles; i++) {
    judge(places[i] == value(2, 3 * first_particle + i, step), "list");
  }
  const double* entries = perdure_consistent(table);
  for (uint64_t i = 0; i < TABLE; i++) judge(entries[i] == value(3, i, step), "table");
}

/* The lines that all old ranks owned are all lines. */
static void judge_by_hand(perdure_pool* pool, unsigned old_ranks) {
  int64_t sum = 0;
  for (unsigned old = 0; old < old_ranks; old++) {
    int64_t its = 0;
    check(perdure_read(pool, "count", old, 0, 1, &its));
    sum += its;
  }
  judge(sum == LINES, "count");
}

int main(int argc, char** argv) {
  const double begin_s = begin_job(argc, argv);
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  perdure_pool* pool;
  const perdure_options options = {.flags = PERDURE_ANY_RANKS, .job = "divide", .keep = 2};
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  perdure_pool_status status;
  check(perdure_status(pool, &status));
  divide_grid();
  open_arrays(pool);
  uint64_t version = 0;
  check(perdure_restart(pool, &version));
  if (version != 0) judge_all();
  if (version != 0 && status.old_ranks != (unsigned)ranks) judge_by_hand(pool, status.old_ranks);
  judge(step == version, "step");
  double until_s = 0;
  for (uint64_t i = 0; i < steps; i++) {
    store(step + 1);
    uint64_t made = 0;
    check(perdure_commit(pool, &made));
    judge(made == step, "number of the version");
    if (i == 0) until_s = MPI_Wtime() - begin_s;
  }
  print_back(version, status.old_ranks, until_s);
  check(perdure_close(pool));
  MPI_Finalize();
  return wrong != 0;
}
