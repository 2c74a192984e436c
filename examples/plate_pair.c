/* SPDX-License-Identifier: BSD-3-Clause */
/* plate.c, whose two arrays are a pair: a version of each step. usage: plate CELLS STEPS POOL */
#include <perdure/perdure.h>
#include <perdure/perdure_ipv.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

static double* plate(int n) {
  double* cells = perdure_ipv_alloc((size_t)n * (size_t)n * sizeof *cells);
  if (cells == NULL) exit(1);
  for (int x = 0; x < n; x++) cells[x] = 1; /* the edge, which no step stores to */
  return cells;
}

static void spread(const double* now, double* next, int n) {
  for (int y = 1; y < n - 1; y++)
    for (int x = 1; x < n - 1; x++) {
      const int i = y * n + x;
      next[i] = 0.2 * (now[i] + now[i - 1] + now[i + 1] + now[i - n] + now[i + n]);
    }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int n = atoi(argv[1]), steps = atoi(argv[2]);
  double* now = plate(n);
  double* next = plate(n);
  int step = 0;
  uint64_t version = 0;
  perdure_pool* pool = NULL;
  void* alive = NULL;
  check(perdure_open(argv[3], NULL, &pool));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_ipv_open(pool, NULL));
  check(perdure_ipv_pair("plate", now, next, (size_t)n * (size_t)n * sizeof *now));
  check(perdure_ipv_restart(&version));
  check(perdure_ipv_alive("plate", &alive)); /* after a restart maybe the other one */
  if (alive != now) {
    next = now;
    now = alive;
  }
  printf("begins at step %d\n", step);
  while (step < steps) {
    spread(now, next, n);
    double* overwritten = next;
    next = now;
    now = overwritten;
    step++;
    check(perdure_ipv_persist(&version));
  }
  double heat = 0;
  for (int i = 0; i < n * n; i++) heat += now[i];
  printf("after %d steps: %.17g\n", step, heat);
  check(perdure_ipv_close());
  check(perdure_close(pool));
  return 0;
}
