/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a plate with a warm edge, by two arrays that take turns. usage: plate CELLS STEPS */
#include <stdio.h>
#include <stdlib.h>

#ifdef RECORD /* for `perdure ipv record` */
#include <perdure/perdure_trace.h>
#else
#define perdure_trace_iteration(number)
#define perdure_trace_end()
#endif

static double* plate(int n) {
  double* cells = calloc((size_t)n * (size_t)n, sizeof *cells);
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
  if (argc != 3) return 2;
  const int n = atoi(argv[1]), steps = atoi(argv[2]);
  double* now = plate(n);
  double* next = plate(n);
  int step = 0;
  while (step < steps) {
    perdure_trace_iteration(step + 1);
    spread(now, next, n);
    double* overwritten = next;
    next = now;
    now = overwritten;
    step++;
  }
  perdure_trace_end();
  double heat = 0;
  for (int i = 0; i < n * n; i++) heat += now[i];
  printf("after %d steps: %.17g\n", step, heat);
  return 0;
}
