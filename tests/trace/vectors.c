// SPDX-License-Identifier: BSD-3-Clause
//
// Loops that become gathers, scatters, and masked loads and stores, over arrays of 32768 lines.
#include <stdio.h>
#include <stdlib.h>

enum { lines = 32768, per_line = 8 };

static void gather(const double* restrict x, const int* restrict at, double* restrict y) {
  for (int i = 0; i < lines; ++i) y[i] = 2 * x[at[i]];
}

static void scatter(double* restrict x, const int* restrict at, const double* restrict y) {
  for (int i = 0; i < lines; ++i) x[at[i]] = y[i] + 1;
}

// Only every 16th element: of the lines of x, every second is touched.
static void masked(double* restrict x, const int* restrict wanted) {
  for (int i = 0; i < lines * per_line; ++i) {
    if (wanted[i] != 0) x[i] = 1 / x[i];
  }
}

int main(void) {
  double* x = aligned_alloc(4096, sizeof *x * lines * per_line);
  double* y = aligned_alloc(4096, sizeof *y * lines);
  int* at = aligned_alloc(4096, sizeof *at * lines);
  int* wanted = aligned_alloc(4096, sizeof *wanted * lines * per_line);
  for (int i = 0; i < lines * per_line; ++i) {
    x[i] = i + 1;
    wanted[i] = i % 16 == 0;
  }
  for (int i = 0; i < lines; ++i) at[i] = (int)((unsigned)i * 12345U % lines) * per_line;
  gather(x, at, y);
  scatter(x, at, y);
  masked(x, wanted);
  printf("%g\n", x[0] + y[1]);
  return 0;
}
