/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A job whose ranks have their arrays in memory of one GPU, each with a stream of its own, and that
 * goes on with whatever number of ranks it gets:
 *
 *     gpu POOL STEPS [KILL_RANK KILL_US]
 *
 * It has the rows of a grid in copy mode and those of a list in log mode. What they hold is a
 * function of the step, and the stream stores that of the next step while a version is saved.
 *
 * On the tests' driver each process has a GPU of its own: what a rank sees is as it is on one GPU,
 * but memory does not run short because of others, and nobody waits for others' work. */
#include "ranks_job.h"

#include "gpu_driver.h"

#define OK(call) check_cuda(call, #call)

enum { GRID_ROWS = 61, GRID_COLUMNS = 600, LIST_ROWS = 41, LIST_COLUMNS = 1000 };

/* Rows of this rank, on the GPU and as the host knows them. */
typedef struct Rows {
  const char* name;
  uint64_t all, columns, first, count;
  int kind;
  CudaAddress at;
  double* host;
  perdure_array* array;
} Rows;

static CudaStream stream;
static Rows grid = {.name = "grid", .all = GRID_ROWS, .columns = GRID_COLUMNS, .kind = 1};
static Rows list = {.name = "list", .all = LIST_ROWS, .columns = LIST_COLUMNS, .kind = 2};

static size_t size_of(const Rows* rows) {
  return rows->count * rows->columns * sizeof(double);
}

static void divide(Rows* rows) {
  const uint64_t each = rows->all / (uint64_t)ranks, more = rows->all % (uint64_t)ranks;
  const uint64_t own = (uint64_t)rank;
  rows->count = each + (own < more);
  rows->first = own * each + (own < more ? own : more);
  OK(cu.allocate(&rows->at, size_of(rows)));
  rows->host = malloc(size_of(rows));
  if (rows->host == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
}

static void open_array(perdure_pool* pool, Rows* rows, int mode) {
  const uint64_t shape[] = {rows->count, rows->columns}, place[] = {rows->first, 0};
  const uint64_t all[] = {rows->all, rows->columns};
  const perdure_array_options options = {.buffer = pointer_to(rows->at)};
  check(
      perdure_array_open(pool, rows->name, PERDURE_DOUBLE, 2, shape, mode, &options, &rows->array));
  check(perdure_array_box(rows->array, all, place));
}

/* By the stream. A third of the list changes with each step. */
static double element(const Rows* rows, uint64_t i, uint64_t at) {
  const uint64_t index = rows->first * rows->columns + i;
  const uint64_t since = rows->kind == 1 ? 0 : (at + index / rows->columns) % 3;
  return value(rows->kind, index, at < since ? 0 : at - since);
}
static void store(Rows* rows, uint64_t at) {
  OK(cu.stream_synchronise(stream)); /* what it stored before was taken from there */
  for (uint64_t i = 0; i < rows->count * rows->columns; i++) rows->host[i] = element(rows, i, at);
  OK(cu.copy_from_host(rows->at, rows->host, size_of(rows), stream));
}

static void judge_rows(Rows* rows) {
  OK(cu.copy_to_host(rows->host, rows->at, size_of(rows), stream));
  OK(cu.stream_synchronise(stream));
  for (uint64_t i = 0; i < rows->count * rows->columns; i++) {
    judge(rows->host[i] == element(rows, i, step), rows->name);
  }
}

static void give_back(Rows* rows) {
  OK(cu.release(rows->at));
  free(rows->host);
}

int main(int argc, char** argv) {
  const double begin_s = begin_job(argc, argv);
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  perdure_pool* pool;
  const perdure_options options = {.flags = PERDURE_ANY_RANKS, .job = "gpu", .keep = 2};
  open_driver();
  OK(cu.stream_create(&stream, CUDA_STREAM_OF_ITS_OWN, 0));
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  perdure_pool_status status;
  check(perdure_status(pool, &status));
  divide(&grid);
  divide(&list);
  open_array(pool, &grid, PERDURE_COPY);
  open_array(pool, &list, PERDURE_LOG);
  check(perdure_scalar(pool, "step", &step, sizeof step));
  check(perdure_stream(pool, PERDURE_STREAM_CUDA, stream));
  uint64_t version = 0;
  check(perdure_restart(pool, &version));
  if (version != 0) {
    judge_rows(&grid);
    judge_rows(&list);
  }
  judge(step == version, "step");
  double until_s = 0;
  store(&grid, step + 1);
  store(&list, step + 1);
  for (uint64_t i = 0; i < steps; i++) {
    uint64_t made = 0;
    step++;
    check(perdure_commit_begin(pool));
    store(&grid, step + 1); /* beside the commit */
    store(&list, step + 1);
    check(perdure_commit_wait(pool, &made));
    judge(made == step, "number of the version");
    if (i == 0) until_s = MPI_Wtime() - begin_s;
  }
  OK(cu.stream_synchronise(stream));
  print_back(version, status.old_ranks, until_s);
  check(perdure_close(pool));
  give_back(&grid);
  give_back(&list);
  MPI_Finalize();
  return wrong != 0;
}
