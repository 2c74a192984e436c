/* SPDX-License-Identifier: BSD-3-Clause */
/* Waves on a square membrane with a slow half. usage: ripples CELLS STEPS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef RECORD /* for `perdure ipv record` */
#include <perdure/perdure_trace.h>
#else
#define perdure_trace_iteration(number)
#define perdure_trace_end()
#endif

struct membrane {
  int n;
  double *height, *velocity; /* what the next step is made of */
  double* force;             /* of one step */
  double* stiffness;         /* of the material */
};

static double* field(int n) {
  double* cells = calloc((size_t)n * (size_t)n, sizeof *cells);
  if (cells == NULL) exit(1);
  return cells;
}

static void set_up(struct membrane* m) {
  const int n = m->n;
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      const double dx = x - 0.3 * n, dy = y - 0.4 * n;
      m->height[y * n + x] = exp(-(dx * dx + dy * dy) / (0.01 * n * n));
      m->stiffness[y * n + x] = x < n / 2 ? 0.2 : 0.05;
    }
}

static void advance(struct membrane* m) {
  const int n = m->n;
  double *u = m->height, *v = m->velocity, *f = m->force, *k = m->stiffness;
  for (int y = 1; y < n - 1; y++)
    for (int x = 1; x < n - 1; x++) {
      const int i = y * n + x;
      f[i] = k[i] * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - 4 * u[i]);
    }
  for (int y = 1; y < n - 1; y++)
    for (int x = 1; x < n - 1; x++) v[y * n + x] += f[y * n + x];
  for (int y = 1; y < n - 1; y++)
    for (int x = 1; x < n - 1; x++) u[y * n + x] += v[y * n + x];
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  struct membrane m = {.n = atoi(argv[1])};
  const int steps = atoi(argv[2]);
  m.height = field(m.n);
  m.velocity = field(m.n);
  m.force = field(m.n);
  m.stiffness = field(m.n);
  set_up(&m);
  int step = 0;
  while (step < steps) {
    perdure_trace_iteration(step + 1);
    advance(&m);
    step++;
  }
  perdure_trace_end();
  double energy = 0;
  for (int i = 0; i < m.n * m.n; i++) energy += m.velocity[i] * m.velocity[i];
  printf("after %d steps: %.17g\n", step, energy);
  return 0;
}
