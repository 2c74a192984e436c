// SPDX-License-Identifier: BSD-3-Clause
/* A job that makes versions until it is killed: kill_job POOL STEPS SEED. Built with and without
 * MPI (WITH_MPI). What step s leaves in an element follows from s alone, so a restart at any
 * version can be checked; each rank notes the newest version that it saw durable in
 * POOL.ack-RANK, and a restart must not give less. A list and a pair have another size, and lie
 * elsewhere, after each step or every few.
 *
 * Exit code: 0 right, 1 a call failed, 2 wrong contents, 3 a version was lost. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#include "perdure/perdure_mpi.h"
#endif
#include "dax/acknowledge.h"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

#define AT(difference, x) (*(uint64_t*)((char*)&(x) + (difference)))

enum { rows = 40, columns = 515, cells = rows * columns, flags = 37, ranks_max = 2 };

static uint64_t *grid, shadow[cells], small[flags], small_shadow[flags];
/* A pair, whose first row is the last one of the rank before: it comes by a message into the array
 * that was just overwritten. */
static uint64_t *wave[2], wave_shadow[ranks_max][2][cells];
static int rank, ranks = 1;
/* As long as their step says, on each rank. */
static uint64_t *list, *tide[2];
static uint64_t list_length, tide_length;

static void check(int code, const char* what) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, perdure_last_error());
  _exit(1);
}

static uint64_t mixed_on(int of, uint64_t old, uint64_t at, uint64_t step) {
  return old * 6364136223846793005u + at * 1442695040888963407u + step + (uint64_t)of;
}

static uint64_t mixed(uint64_t old, uint64_t at, uint64_t step) {
  return mixed_on(rank, old, at, step);
}

/* The rows that a step overwrites: all, every third, or, by plain stores, a few elements. */
static uint64_t stride_of(uint64_t step) {
  return step % 4 == 1 ? 3 : 1;
}

static void step_of_wave(int of, const uint64_t* from, uint64_t* to, uint64_t step) {
  for (uint64_t i = columns; i < cells; i++) {
    to[i] = mixed_on(of, from[i - columns], i, step) + from[i];
  }
}

static void exchange(uint64_t* to) {
  uint64_t* const last = to + cells - columns;
#ifdef WITH_MPI
  MPI_Sendrecv(last, columns, MPI_UINT64_T, (rank + 1) % ranks, 0, to, columns, MPI_UINT64_T,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
  memcpy(to, last, columns * sizeof *to);
#endif
}

static void step_of_shadow_waves(uint64_t step) {
  const uint64_t now = step % 2;
  for (int of = 0; of < ranks; of++) {
    step_of_wave(of, wave_shadow[of][1 - now], wave_shadow[of][now], step);
  }
  for (int of = 0; of < ranks; of++) {
    const uint64_t* const before = wave_shadow[(of + ranks - 1) % ranks][now];
    memcpy(wave_shadow[of][now], before + cells - columns, columns * sizeof *before);
  }
}

static void step_of_shadow(uint64_t step) {
  step_of_shadow_waves(step);
  if (step % 4 == 3) {
    for (uint64_t i = step % 11; i < cells; i += 1000) shadow[i] = mixed(shadow[i], i, step);
  } else if (step % 4 != 2) {
    for (uint64_t j = 0; j < rows; j += stride_of(step)) {
      for (uint64_t i = j * columns; i < (j + 1) * columns; i++) {
        shadow[i] = mixed(shadow[i], i, step);
      }
    }
  }
  if (step % 3 == 0) small_shadow[step % flags] = mixed(small_shadow[step % flags], 0, step);
}

static uint64_t list_length_at(uint64_t step) {
  return mixed(17, 0, step) % 9000;
}

static uint64_t tide_length_at(uint64_t step) {
  return 600 + mixed(19, 1, step / 5) % 3000;
}

static void fill(uint64_t* to, uint64_t length, uint64_t step) {
  for (uint64_t i = 0; i < length; i++) to[i] = mixed(23, i, step);
}

/* Of what it holds a part stays; and some steps leave it where and as long as it is. */
static void step_of_list(uint64_t step) {
  if (step % 7 != 0) {
    list_length = list_length_at(step);
    list = realloc(list, list_length * sizeof *list + 1);
    if (list == NULL) _exit(1);
    check(perdure_ipv_resize("list", list, list_length * sizeof *list), "resize");
  }
  fill(list, list_length, step);
}

static void step_of_tide(uint64_t step) {
  void* alive = NULL;
  check(perdure_ipv_alive("tide", &alive), "alive");
  if (tide_length_at(step) != tide_length) {
    uint64_t* before[2] = {tide[0], tide[1]};
    tide_length = tide_length_at(step);
    for (int i = 0; i < 2; i++) tide[i] = perdure_ipv_alloc(tide_length * sizeof *tide[i]);
    fill(tide[0], tide_length, step - 1);
    check(perdure_ipv_resize_pair("tide", tide[0], tide[1], tide_length * sizeof *tide[0]),
          "resize_pair");
    for (int i = 0; i < 2; i++) perdure_ipv_free(before[i]);
    alive = tide[0];
  }
  fill(alive == tide[0] ? tide[1] : tide[0], tide_length, step);
}

static void check_lengths(uint64_t step) {
  void* alive = NULL;
  check(perdure_ipv_alive("tide", &alive), "alive");
  const uint64_t* const now = alive;
  const uint64_t of_list = step % 7 == 0 && step != 0 ? step - 1 : step;
  int right = list_length == (step == 0 ? 0 : list_length_at(of_list));
  right = right && tide_length == tide_length_at(step);
  for (uint64_t i = 0; right && i < list_length; i++) right = list[i] == mixed(23, i, step);
  for (uint64_t i = 0; right && i < tide_length; i++) right = now[i] == mixed(23, i, step);
  if (right) return;
  fprintf(stderr, "rank %d: step %llu has other contents, of what grows\n", rank,
          (unsigned long long)step);
  _exit(2);
}

static void step_of_grid(uint64_t step) {
  step_of_list(step);
  step_of_tide(step);
  step_of_wave(rank, wave[(step + 1) % 2], wave[step % 2], step);
  exchange(wave[step % 2]);
  if (step % 4 == 3) {
    for (uint64_t i = step % 11; i < cells; i += 1000) grid[i] = mixed(grid[i], i, step);
  } else if (step % 4 != 2) { /* 2: the grid does not change */
    const uint64_t stride = stride_of(step);
    const struct perdure_ipv_box box = {grid,
                                        2,
                                        {columns * sizeof *grid, (rows + stride - 1) / stride},
                                        {1, stride * columns * sizeof *grid},
                                        NULL,
                                        0};
    const struct perdure_ipv_answer by = perdure_ipv_box_begin(&box);
    for (uint64_t j = 0; j < rows; j += stride) {
      uint64_t* row = grid + j * columns;
      for (uint64_t i = 0; i < columns; i++) {
        row[i] = mixed(AT(by.load, row[i]), j * columns + i, step);
      }
    }
    if (by.how != PERDURE_IPV_NO_BOX) perdure_ipv_box_end(&box, 0);
  }
  if (step % 3 == 0) small[step % flags] = mixed(small[step % flags], 0, step);
}

static void name_what_grows(perdure_pool* pool) {
  uint64_t bytes[8] = {0};
  perdure_stored_shape(pool, "list", 0, NULL, bytes);
  list_length = bytes[0] / sizeof *list;
  list = malloc(bytes[0] + 1);
  bytes[0] = tide_length_at(0) * sizeof *tide[0];
  perdure_stored_shape(pool, "tide", 0, NULL, bytes);
  tide_length = bytes[0] / sizeof *tide[0];
  for (int i = 0; i < 2; i++) tide[i] = perdure_ipv_alloc(bytes[0]);
  if (list == NULL || tide[0] == NULL || tide[1] == NULL) _exit(1);
  fill(tide[0], tide_length, 0);
  check(perdure_ipv_object("list", list, list_length * sizeof *list, NULL), "object");
  check(perdure_ipv_pair("tide", tide[0], tide[1], tide_length * sizeof *tide[0]), "pair");
}

static void check_contents(uint64_t step) {
  check_lengths(step);
  for (uint64_t s = 1; s <= step; s++) step_of_shadow(s);
  void* alive = NULL;
  check(perdure_ipv_alive("wave", &alive), "alive");
  if (alive == wave[step % 2] && memcmp(alive, wave_shadow[rank][step % 2], sizeof shadow) == 0 &&
      memcmp(grid, shadow, sizeof shadow) == 0 && memcmp(small, small_shadow, sizeof small) == 0) {
    return;
  }
  fprintf(stderr, "rank %d: step %llu has other contents\n", rank, (unsigned long long)step);
  _exit(2);
}

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  perdure_pool* pool = NULL;
#ifdef WITH_MPI
  int provided;
  const int wanted = atoi(argv[3]) % 2 == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(NULL, NULL, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > ranks_max) return 1;
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], NULL, &pool), "open");
#else
  check(perdure_open(argv[1], NULL, &pool), "open");
#endif
  char path[4096];
  snprintf(path, sizeof path, "%s.ack-%d", argv[1], rank);
  const int ack = open(path, O_RDWR | O_CREAT, 0600);
  uint64_t seen = 0, version = 0, step = 0;
  if (ack < 0 || pread(ack, &seen, sizeof seen, 0) < 0) return 1;

  grid = perdure_ipv_alloc(cells * sizeof *grid);
  for (int i = 0; i < 2; i++) wave[i] = perdure_ipv_alloc(cells * sizeof *grid);
  if (grid == NULL || wave[0] == NULL || wave[1] == NULL) return 1;
  check(perdure_scalar(pool, "step", &step, sizeof step), "scalar");
  check(perdure_ipv_open(pool, NULL), "ipv_open");
  check(perdure_ipv_object("grid", grid, cells * sizeof *grid, NULL), "object");
  check(perdure_ipv_object("small", small, sizeof small, NULL), "object");
  check(perdure_ipv_pair("wave", wave[0], wave[1], cells * sizeof *grid), "pair");
  name_what_grows(pool);
  check(perdure_ipv_restart(&version), "restart");
  if (version < seen) {
    fprintf(stderr, "rank %d: version %llu came back, but %llu was durable\n", rank,
            (unsigned long long)version, (unsigned long long)seen);
    return 3;
  }
  check_contents(step);
  say_restarted(pool, version);
  while (step < steps) {
    step++;
    step_of_grid(step);
    check(perdure_ipv_persist(&version), "persist");
    if (pwrite(ack, &version, sizeof version, 0) != sizeof version) return 1;
    if (rank == 0) say_committed(version);
  }
  for (uint64_t i = 0; i < cells; i++) shadow[i] = 0;
  memset(small_shadow, 0, sizeof small_shadow);
  memset(wave_shadow, 0, sizeof wave_shadow);
  check_contents(step);
  check(perdure_ipv_close(), "ipv_close");
  check(perdure_close(pool), "close");
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
