/* SPDX-License-Identifier: BSD-3-Clause */
/* ripples.c, with a version of what it carries in each step. usage: ripples CELLS STEPS POOL */
#include <math.h>
#include <perdure/perdure.h>
#include <perdure/perdure_ipv.h>
#include <stdio.h>
#include <stdlib.h>

struct membrane {
  int n;
  double *height, *velocity; /* what the next step is made of */
  double* force;             /* of one step */
  double* stiffness;         /* of the material */
};

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

static double* carried(int n) {
  double* cells = perdure_ipv_alloc((size_t)n * (size_t)n * sizeof *cells);
  if (cells == NULL) exit(1);
  return cells;
}

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
  if (argc != 4) return 2;
  struct membrane m = {.n = atoi(argv[1])};
  const int steps = atoi(argv[2]);
  const size_t bytes = (size_t)m.n * (size_t)m.n * sizeof(double);
  m.height = carried(m.n);
  m.velocity = carried(m.n);
  m.force = field(m.n);
  m.stiffness = field(m.n);
  set_up(&m);
  int step = 0;
  uint64_t version = 0;
  perdure_pool* pool = NULL;
  check(perdure_open(argv[3], NULL, &pool));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_ipv_open(pool, NULL));
  check(perdure_ipv_object("height", m.height, bytes, NULL));
  check(perdure_ipv_object("velocity", m.velocity, bytes, NULL));
  check(perdure_ipv_restart(&version));
  printf("begins at step %d\n", step);
  while (step < steps) {
    advance(&m);
    step++;
    check(perdure_ipv_persist(&version));
  }
  double energy = 0;
  for (int i = 0; i < m.n * m.n; i++) energy += m.velocity[i] * m.velocity[i];
  printf("after %d steps: %.17g\n", step, energy);
  check(perdure_ipv_close());
  check(perdure_close(pool));
  return 0;
}
