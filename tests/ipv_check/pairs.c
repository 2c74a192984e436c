// SPDX-License-Identifier: BSD-3-Clause
//
// Loops that keep two arrays themselves, for `perdure ipv record`: pairs CASE STEPS. In some the
// two may be a pair (perdure_ipv_pair()), in the others not.
#include <perdure/perdure_trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n = 40, cells = n * n, directions = 9 };

static const int cx[directions] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int cy[directions] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const char* which;

static int is(const char* name) {
  return strcmp(which, name) == 0;
}

// Inner points from the other array; the walls stay.
static void jacobi(const double* from, double* to) {
  for (int j = 1; j < n - 1; j++)
    for (int i = 1; i < n - 1; i++)
      to[j * n + i] = 0.25 * (from[j * n + i - 1] + from[j * n + i + 1] + from[(j - 1) * n + i] +
                              from[(j + 1) * n + i]);
}

// A lattice Boltzmann flow (D2Q9, periodic).
static void stream_and_collide(const double* from, double* to) {
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      double f[directions], rho = 0, u = 0, v = 0;
      for (int d = 0; d < directions; d++) {
        f[d] = from[d * cells + (y - cy[d] + n) % n * n + (x - cx[d] + n) % n];
        rho += f[d];
        u += cx[d] * f[d];
        v += cy[d] * f[d];
      }
      for (int d = 0; d < directions; d++) {
        const double weight = d == 0 ? 4.0 / 9 : d < 5 ? 1.0 / 9 : 1.0 / 36;
        to[d * cells + y * n + x] =
            f[d] - 1.7 * (f[d] - weight * (rho + 3 * (cx[d] * u + cy[d] * v)));
      }
    }
}

// Second order in time: what is overwritten is read first.
static void wave(const double* from, double* to) {
  for (int j = 1; j < n - 1; j++)
    for (int i = 1; i < n - 1; i++)
      to[j * n + i] = 1.8 * from[j * n + i] - to[j * n + i] + 0.1 * from[j * n + i + 1];
}

static double* array(size_t count) {
  double* const made = aligned_alloc(4096, count * sizeof(double));
  for (size_t i = 0; i < count; i++) made[i] = 1 + (double)(i % 17) * 0.01;
  return made;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  which = argv[1];
  const int steps = atoi(argv[2]);
  const size_t count = is("lbm") ? directions * cells : cells;
  double* const f = array(count);
  double* const g = array(count);
  if (is("walls")) g[5] += 1;  // a wall that is not the same in both
  double *from = f, *to = g;
  for (int step = 0; step < steps; step++) {
    perdure_trace_iteration(step + 1);
    if (is("lbm")) {
      stream_and_collide(from, to);
    } else if (is("wave")) {
      wave(from, to);
    } else {
      jacobi(from, to);
    }
    if (is("now_and_then") && step == 5) to[3 * n + 3] = 7;
    if (is("column") && step % 4 < 2) to[7] = from[7] + 1;
    if (is("both")) from[2 * n + 2] = 0;
    double* const swapped = from;
    from = to;
    to = swapped;
    if (is("twice")) {  // the loop ends where it began
      jacobi(from, to);
      from = f;
      to = g;
    }
  }
  perdure_trace_end();
  printf("%.17g\n", from[n + 7]);
  free(f);
  free(g);
  return 0;
}
