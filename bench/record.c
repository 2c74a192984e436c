// SPDX-License-Identifier: BSD-3-Clause
//
// The loop of a conjugate-gradient solver, for `perdure bench record`: the same source is built
// with and without --trace. record ROWS NONZEROS ITERATIONS prints the seconds of its loop: that
// passed, and of CPU time, of all threads.
//
// A matrix in compressed rows with random columns: three streams of memory (values, columns, and
// the vector that the columns select), as in NPB CG.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct matrix {
  int rows;
  int* begin;
  int* column;
  double* value;
};

static struct matrix make_matrix(int rows, int nonzeros) {
  const size_t count = (size_t)rows * (size_t)nonzeros;
  struct matrix m = {rows, malloc(((size_t)rows + 1) * sizeof(int)), malloc(count * sizeof(int)),
                     malloc(count * sizeof(double))};
  unsigned random = 12345;
  for (int i = 0; i <= rows; ++i) m.begin[i] = i * nonzeros;
  for (size_t k = 0; k < count; ++k) {
    random = random * 1664525U + 1013904223U;
    m.column[k] = (int)((random >> 8) % (unsigned)rows);
    m.value[k] = 1.0 / (double)(1 + k % (size_t)nonzeros);
  }
  return m;
}

static void multiply(const struct matrix* m, const double* p, double* q) {
  for (int row = 0; row < m->rows; ++row) {
    double sum = 0;
    for (int k = m->begin[row]; k < m->begin[row + 1]; ++k) sum += m->value[k] * p[m->column[k]];
    q[row] = sum;
  }
}

static double dot(const double* x, const double* y, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int n = atoi(words[1]);
  const struct matrix m = make_matrix(n, atoi(words[2]));
  double *p = malloc((size_t)n * 8), *q = malloc((size_t)n * 8), *r = malloc((size_t)n * 8);
  double* z = calloc((size_t)n, 8);
  for (int i = 0; i < n; ++i) p[i] = r[i] = 1;
  const double began = seconds(CLOCK_MONOTONIC), cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
  double rho = n;
  for (int iteration = 0; iteration < atoi(words[3]); ++iteration) {
    multiply(&m, p, q);
    const double alpha = rho / (dot(p, q, n) + 1), before = rho;
    for (int i = 0; i < n; ++i) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    rho = dot(r, r, n);
    for (int i = 0; i < n; ++i) p[i] = r[i] + rho / before * p[i];
  }
  printf("%.6f %.6f\n", seconds(CLOCK_MONOTONIC) - began,
         seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began);
  fprintf(stderr, "%g\n", z[0]);
  return 0;
}
