/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Objects of in-place versioning that go on with whatever number of ranks there is:
 *
 *     objects POOL STEPS [KILL_RANK KILL_US]
 *     objects POOL nothing|rows
 *
 * Rows that the ranks have together in each tier and in a pair, a list whose rows move from rank to
 * rank at each step, a table that is the same on all, and, where the pool keeps one version, a
 * count that is read by hand. What they hold is a function of the step. The pool keeps one version
 * or two, by the last letter of its name, so that both are tried. What is said of an object is left
 * out, or wrong, with the second line: that is refused. */
#include <perdure/perdure_ipv.h>

#include "ranks_job.h"

enum { ROWS = 9001, TABLE = 700, TIERS = 2 };

static const char* const names[TIERS] = {"copied", "streamed"};
static int by_hand;
static uint64_t first, own;
static double *rows[TIERS], *wave[2], *table;
static int64_t* count;

/* The list: row i is the rank's if cut(at, rank) <= i < cut(at, rank + 1). */
static double* list;
static uint64_t list_first, list_rows;

static uint64_t cut(uint64_t at, int of) {
  const uint64_t even = (uint64_t)ROWS * (uint64_t)of / (uint64_t)ranks;
  return of == 0 || of == ranks ? even : even - (at * 37 + (uint64_t)of * 11) % 400;
}

static void take_list(uint64_t at) {
  list_first = cut(at, rank);
  list_rows = cut(at, rank + 1) - list_first;
  list = realloc(list, list_rows * sizeof *list + 1);
  if (list == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
}

/* As long as the pool has it; in a new pool, or of other ranks, any division will do. */
static void name_list(perdure_pool* pool) {
  uint64_t bytes[8] = {0};
  take_list(7);
  if (perdure_stored_shape(pool, "list", 0, NULL, bytes) == PERDURE_OK) {
    list_rows = bytes[0] / sizeof *list;
    list = realloc(list, bytes[0] + 1);
    if (list == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  }
  check(perdure_ipv_object("list", list, list_rows * sizeof *list, NULL));
  check(perdure_ipv_ranks("list", PERDURE_ROWS));
}

static double* memory_of(uint64_t doubles) {
  double* memory = perdure_ipv_alloc(doubles * sizeof(double));
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  return memory;
}

/* `trial`: what is not said, or not right, of the first object. */
static void name_objects(const char* trial) {
  const uint64_t less = strcmp(trial, "rows") == 0 ? 1 : 0;
  for (int tier = 0; tier < TIERS; tier++) {
    const perdure_ipv_object_options options = {.tier = PERDURE_IPV_COPY + tier};
    rows[tier] = memory_of(own);
    const uint64_t bytes = (own - (tier == 0 ? less : 0)) * sizeof(double);
    check(perdure_ipv_object(names[tier], rows[tier], bytes, &options));
    if (tier == 0 && strcmp(trial, "nothing") == 0) continue;
    check(perdure_ipv_ranks(names[tier], PERDURE_ROWS));
  }
  for (int i = 0; i < 2; i++) wave[i] = memory_of(own);
  check(perdure_ipv_pair("wave", wave[0], wave[1], own * sizeof(double)));
  check(perdure_ipv_ranks("wave", PERDURE_ROWS));
  table = memory_of(TABLE);
  check(perdure_ipv_object("table", table, TABLE * sizeof *table, NULL));
  check(perdure_ipv_ranks("table", PERDURE_SAME));
  if (!by_hand) return;
  check(perdure_ipv_object("count", count, sizeof *count, NULL));
  check(perdure_ipv_ranks("count", PERDURE_BY_HAND));
}

/* What all old ranks had together, on each new one. */
static void read_by_hand(perdure_pool* pool, unsigned old_ranks, int64_t* sum) {
  for (unsigned old = 0; old < old_ranks; old++) {
    int64_t its = 0;
    check(perdure_read(pool, "count", old, 0, sizeof its, &its));
    *sum += its;
  }
}

static void store(uint64_t at) {
  void* alive = NULL;
  check(perdure_ipv_alive("wave", &alive));
  double* const next = alive == wave[0] ? wave[1] : wave[0];
  for (uint64_t i = 0; i < own; i++) {
    for (int tier = 0; tier < TIERS; tier++) rows[tier][i] = value(1 + tier, first + i, at);
    next[i] = value(5, first + i, at);
  }
  for (uint64_t i = 0; i < TABLE; i++) table[i] = value(7, i, at);
  take_list(at);
  for (uint64_t i = 0; i < list_rows; i++) list[i] = value(9, list_first + i, at);
  check(perdure_ipv_resize("list", list, list_rows * sizeof *list));
  *count = (int64_t)own;
  step = at;
}

static void judge_all(void) {
  void* alive = NULL;
  check(perdure_ipv_alive("wave", &alive));
  const double* const now = alive;
  for (uint64_t i = 0; i < own; i++) {
    for (int tier = 0; tier < TIERS; tier++) {
      judge(rows[tier][i] == value(1 + tier, first + i, step), names[tier]);
    }
    judge(now[i] == value(5, first + i, step), "wave");
  }
  for (uint64_t i = 0; i < TABLE; i++) judge(table[i] == value(7, i, step), "table");
  for (uint64_t i = 0; i < list_rows; i++) {
    judge(list[i] == value(9, list_first + i, step), "list");
  }
}

/* What the new files have of the old version lacks the objects: it is no version that they keep. */
static void judge_versions(perdure_pool* pool) {
  size_t held = 0;
  check(perdure_versions(pool, NULL, 0, &held));
  judge(held == 1, "number of versions");
}

static void run_steps(perdure_pool* pool, int changes, uint64_t steps, double begin_s,
                      double* until_s) {
  for (uint64_t i = 0; i < steps; i++) {
    store(step + 1);
    uint64_t durable = 0;
    check(perdure_ipv_persist(NULL));
    if (i != 0) continue;
    check(perdure_ipv_wait(&durable));
    judge(durable == step, "number of the version");
    if (changes) judge_versions(pool);
    *until_s = MPI_Wtime() - begin_s;
  }
}

static uint64_t begins_at(int of) {
  const uint64_t all = ROWS, n = (uint64_t)ranks, r = (uint64_t)of;
  return all * r / n;
}

int main(int argc, char** argv) {
  const double begin_s = begin_job(argc, argv);
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  first = begins_at(rank);
  own = begins_at(rank + 1) - first;
  perdure_pool* pool;
  const unsigned keep = 1 + (unsigned)argv[1][strlen(argv[1]) - 1] % 2;
  const perdure_options options = {.flags = PERDURE_ANY_RANKS, .job = "objects", .keep = keep};
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  perdure_pool_status status;
  check(perdure_status(pool, &status));
  check(perdure_scalar(pool, "step", &step, sizeof step));
  check(perdure_ipv_open(pool, NULL));
  count = (int64_t*)memory_of(1);
  const int other = status.old_ranks != (unsigned)ranks;
  by_hand = keep == 1; /* what R lacks where two are kept is not said by hand then */
  if (by_hand && other) read_by_hand(pool, status.old_ranks, count);
  name_list(pool);
  name_objects(argv[2]);
  uint64_t version = 0;
  check(perdure_ipv_restart(&version));
  if (!other && version != 0) list_first = cut(step, rank);
  if (version != 0) judge_all();
  if (by_hand && version != 0) judge(*count == (int64_t)(other ? ROWS : own), "count");
  judge(step == version, "step");
  double until_s = 0;
  run_steps(pool, other && version != 0, steps, begin_s, &until_s);
  check(perdure_ipv_close());
  print_back(version, status.old_ranks, until_s);
  check(perdure_close(pool));
  MPI_Finalize();
  return wrong != 0;
}
