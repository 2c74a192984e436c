// SPDX-License-Identifier: BSD-3-Clause
/* A job in a virtual machine that is killed: dax_job copy|twin|log|window POOL CELLS STEPS
 *
 * What a cell holds after step s follows from s alone, so a restart at any step can be checked. An
 * array is one process's; a window is one of mode twin, in whose cells each rank's left neighbour
 * puts. STEPS counts from the first run on: a job that has them already only checks and closes.
 *
 *   dax_job wbinvd     executes it, which the processor grants to kernels only
 *
 * Exit code: 0 right, 1 a call failed, 2 wrong contents. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acknowledge.h"
#include "perdure/perdure_mpi.h"

enum { block = 512, turns = 4 };

static int rank, ranks = 1;

static void check(int code, const char* what) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, perdure_last_error());
  exit(1);
}

/* Each step changes every fourth block. */
static int changes(uint64_t step, uint64_t cell) {
  return (cell / block) % turns == step % turns;
}

static uint64_t value(uint64_t step, uint64_t cell, int owner) {
  while (step > 0 && !changes(step, cell)) step--;
  return step == 0 ? 0 : step * 1000003u + cell * 7919u + (uint64_t)owner;
}

static void check_contents(const uint64_t* cell, uint64_t cells, uint64_t step) {
  for (uint64_t i = 0; step != 0 && i < cells; i++) {
    if (cell[i] == value(step, i, rank)) continue;
    fprintf(stderr, "rank %d: step %llu has other contents in cell %llu\n", rank,
            (unsigned long long)step, (unsigned long long)i);
    exit(2);
  }
}

/* All of it, or, where the rest is there already, what the step changes. */
static void fill(uint64_t* cell, uint64_t cells, uint64_t step, int owner, int all) {
  for (uint64_t i = 0; i < cells; i++) {
    if (all || changes(step, i)) cell[i] = value(step, i, owner);
  }
}

static void run_array(int mode, const char* place, uint64_t cells, uint64_t steps) {
  perdure_pool* pool;
  perdure_array* array;
  uint64_t step = 0, version = 0;
  check(perdure_open(place, NULL, &pool), "open");
  check(perdure_array_open(pool, "cells", PERDURE_INT64, 1, &cells, mode, NULL, &array), "array");
  check(perdure_scalar(pool, "step", &step, sizeof step), "scalar");
  check(perdure_restart(pool, &version), "restart");
  check_contents(perdure_consistent(array), cells, step);
  say_restarted(pool, step);
  while (step < steps) {
    step++;
    fill(perdure_working(array), cells, step, rank, mode == PERDURE_TWIN);
    check(perdure_commit(pool, &version), "commit");
    say_committed(step);
  }
  check_contents(perdure_consistent(array), cells, step);
  check(perdure_close(pool), "close");
}

static const uint64_t* consistent_cells(MPI_Win window) {
  MPI_Win consistent, working;
  uint64_t* base;
  int found;
  check(perdure_win_halves(window, &consistent, &working), "halves");
  MPI_Win_get_attr(consistent, MPI_WIN_BASE, &base, &found);
  return base;
}

static MPI_Win open_window(const char* place, uint64_t cells) {
  MPI_Win window;
  MPI_Info info;
  void* base;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "cells");
  MPI_Info_set(info, "perdure_pool", place);
  MPI_Info_set(info, "perdure_mode", "twin");
  MPI_Win_allocate((MPI_Aint)(cells * 8), 8, info, MPI_COMM_WORLD, &base, &window);
  MPI_Info_free(&info);
  return window;
}

static void run_window(const char* place, uint64_t cells, uint64_t steps) {
  uint64_t step = 0, *put = malloc(cells * 8);
  perdure_pool* pool;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Win window = open_window(place, cells);
  check(perdure_win_pool(window, &pool), "pool");
  check(perdure_scalar(pool, "step", &step, sizeof step), "scalar");
  check_contents(consistent_cells(window), cells, step);
  if (rank == 0) say_restarted(pool, step);
  const int right = (rank + 1) % ranks;
  while (step < steps) {
    step++;
    fill(put, cells, step, right, 1);
    MPI_Win_fence(0, window);
    MPI_Put(put, (int)cells, MPI_UINT64_T, right, 0, (int)cells, MPI_UINT64_T, window);
    MPI_Win_fence(PERDURE_MODE_COMMIT, window);
    if (rank == 0) say_committed(step);
  }
  check_contents(consistent_cells(window), cells, step);
  MPI_Win_free(&window);
  MPI_Finalize();
  free(put);
}

/* As bytes. The first return alone shows that they can be executed; wbinvd raises SIGSEGV. */
static int try_wbinvd(void) {
  static const unsigned char code[] = {0xc3, 0x0f, 0x09, 0xc3}; /* ret; wbinvd; ret */
  unsigned char* page = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  memcpy(page, code, sizeof code);
  ((void (*)(void))page)();
  puts("bytes are executed");
  fflush(stdout);
  ((void (*)(void))(page + 1))();
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "wbinvd") == 0) return try_wbinvd();
  if (argc != 5) return 1;
  const uint64_t cells = strtoull(argv[3], NULL, 10), steps = strtoull(argv[4], NULL, 10);
  if (strcmp(argv[1], "window") == 0) {
    run_window(argv[2], cells, steps);
  } else if (strcmp(argv[1], "copy") == 0) {
    run_array(PERDURE_COPY, argv[2], cells, steps);
  } else if (strcmp(argv[1], "twin") == 0) {
    run_array(PERDURE_TWIN, argv[2], cells, steps);
  } else if (strcmp(argv[1], "log") == 0) {
    run_array(PERDURE_LOG, argv[2], cells, steps);
  } else {
    return 1;
  }
  return 0;
}
