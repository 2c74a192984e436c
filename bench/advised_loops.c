// SPDX-License-Identifier: BSD-3-Clause
//
// Loops that `perdure bench advise` records and then protects as it was advised:
//
//     bench_advised_loops LOOP SIZE STEPS [POOL MODE]
//
// LOOP is wave (heights, velocities, and a force that each step computes anew, on SIZE x SIZE
// cells), lbm (a lattice Boltzmann flow with two arrays that swap), or particles (SIZE of them, of
// which a few are awake). With POOL a version of each step is made, in MODE copy or log. The last
// line is the processor's seconds of the loop, so that other programs do not count, the steps and a
// sum.
#include <math.h>
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIRECTIONS = 9, ARRAYS_MAX = 4 };

struct state {
  long n;                     // along an edge; of particles how many
  double* array[ARRAYS_MAX];  // the first `carried` are what the next step is made of
  uint64_t elements[ARRAYS_MAX];
  int arrays, carried;
};

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "bench_advised_loops: %s\n", perdure_last_error());
  exit(1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct state with_arrays(long n, int arrays, int carried, uint64_t elements) {
  struct state s = {.n = n, .arrays = arrays, .carried = carried};
  for (int i = 0; i < arrays; i++) {
    s.elements[i] = elements;
    s.array[i] = malloc(elements * sizeof(double));
    if (s.array[i] == NULL) exit(1);
    for (uint64_t at = 0; at < elements; at++) s.array[i][at] = 1 + 1e-3 * (double)(at % 97);
  }
  return s;
}

static void wave_step(struct state* s) {
  const long n = s->n;
  double *height = s->array[0], *velocity = s->array[1], *force = s->array[2];
  for (long y = 1; y < n - 1; y++)
    for (long x = 1; x < n - 1; x++) {
      const long i = y * n + x;
      force[i] =
          0.2 * (height[i - 1] + height[i + 1] + height[i - n] + height[i + n] - 4 * height[i]);
    }
  for (long i = n; i < n * (n - 1); i++) velocity[i] = 0.999 * velocity[i] + force[i];
  for (long i = n; i < n * (n - 1); i++) height[i] += 0.1 * velocity[i] - 1e-4 * sin(height[i]);
}

static void lbm_step(struct state* s) {
  static const int cx[DIRECTIONS] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
  static const int cy[DIRECTIONS] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  const long n = s->n, cells = n * n;
  const double* from = s->array[0];
  double* to = s->array[1];
  for (long y = 0; y < n; y++)
    for (long x = 0; x < n; x++) {
      double f[DIRECTIONS], rho = 0, u = 0, v = 0;
      for (int d = 0; d < DIRECTIONS; d++) {
        const long fx = (x - cx[d] + n) % n, fy = (y - cy[d] + n) % n;
        f[d] = from[d * cells + fy * n + fx];
        rho += f[d];
        u += cx[d] * f[d];
        v += cy[d] * f[d];
      }
      u /= rho;
      v /= rho;
      for (int d = 0; d < DIRECTIONS; d++) {
        const double e = cx[d] * u + cy[d] * v, weight = d == 0 ? 4. / 9 : d < 5 ? 1. / 9 : 1. / 36;
        const double still = weight * rho * (1 + 3 * e + 4.5 * e * e - 1.5 * (u * u + v * v));
        to[d * cells + y * n + x] = f[d] + 1.2 * (still - f[d]);
      }
    }
  s->array[1] = s->array[0];
  s->array[0] = to;
}

// Particles of four numbers; those of the cells around a place that moves are awake.
static void particles_step(struct state* s, long step) {
  double* p = s->array[0];
  const long awake = s->n / 20, first = (step * awake / 64) % (s->n - awake);
  for (int turn = 0; turn < 12; turn++)
    for (long i = first; i < first + awake; i++) {
      p[4 * i + 2] += 1e-3 * sin(p[4 * i]);
      p[4 * i + 3] += 1e-3 * cos(p[4 * i + 1]);
      p[4 * i] += p[4 * i + 2];
      p[4 * i + 1] += p[4 * i + 3];
    }
}

static void step_of(const char* loop, struct state* s, long step) {
  if (strcmp(loop, "wave") == 0) {
    wave_step(s);
  } else if (strcmp(loop, "lbm") == 0) {
    lbm_step(s);
  } else {
    particles_step(s, step);
  }
}

static struct state state_of(const char* loop, long size) {
  const uint64_t cells = (uint64_t)size * (uint64_t)size;
  if (strcmp(loop, "wave") == 0) return with_arrays(size, 3, 2, cells);
  if (strcmp(loop, "lbm") == 0) return with_arrays(size, 2, 2, DIRECTIONS * cells);
  return with_arrays(size, 1, 1, 4 * (uint64_t)size);
}

// In mode log the pool allocates: a buffer of the program's own would have to begin at a page.
static perdure_pool* protect(struct state* s, const char* path, const char* mode) {
  static const char* names[ARRAYS_MAX] = {"a", "b", "c", "d"};
  const int how = strcmp(mode, "log") == 0 ? PERDURE_LOG : PERDURE_COPY;
  perdure_array* opened[ARRAYS_MAX];
  perdure_pool* pool;
  uint64_t version;
  check(perdure_open(path, NULL, &pool));
  for (int i = 0; i < s->carried; i++) {
    const perdure_array_options own = {.buffer = s->array[i]};
    check(perdure_array_open(pool, names[i], PERDURE_DOUBLE, 1, &s->elements[i], how,
                             how == PERDURE_LOG ? NULL : &own, &opened[i]));
  }
  check(perdure_restart(pool, &version));
  for (int i = 0; i < s->carried && how == PERDURE_LOG; i++) {
    memcpy(perdure_working(opened[i]), s->array[i], s->elements[i] * sizeof(double));
    s->array[i] = perdure_working(opened[i]);
  }
  return pool;
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  const long steps = atol(argv[3]);
  struct state s = state_of(argv[1], atol(argv[2]));
  perdure_pool* pool = argc == 6 ? protect(&s, argv[4], argv[5]) : NULL;
  double sum = 0;
  const double began = seconds();
  for (long step = 0; step < steps; step++) {
    step_of(argv[1], &s, step);
    if (pool != NULL) check(perdure_commit(pool, NULL));
  }
  const double took = seconds() - began;
  for (uint64_t i = 0; i < s.elements[0]; i++) sum += s.array[0][i];
  printf("%.6f %ld %.17g\n", took, steps, sum);
  if (pool != NULL) check(perdure_close(pool));
}
