// SPDX-License-Identifier: BSD-3-Clause
//
// Objects that teams of OpenMP overwrite, for ThreadSanitizer. With RACE, there is one.
#include <stdio.h>
#include <stdlib.h>

#include "perdure/perdure.h"
#include "perdure/perdure_ipv.h"

enum { rows = 100, n = 600, cells = rows * n, iterations = 10 };

static void must(int code) {
  if (code == 0) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

static void step(double* u, const double* r, double* v) {
#pragma omp parallel for
  for (long j = 1; j < rows - 1; ++j)
    for (long i = 1; i < n - 1; ++i) u[j * n + i] += 0.5 * r[j * n + i];
#pragma omp parallel for
  for (long i = 0; i < cells; ++i) v[i] = 0.5 * v[i] + u[i];
#ifdef RACE
#pragma omp parallel for
  for (long i = 0; i < cells; ++i) v[i % 7] = i;
#endif
}

int main(int count, char** words) {
  if (count != 2) return 2;
  int done = 0;
  perdure_pool* pool;
  double* u = perdure_ipv_alloc(cells * sizeof *u);
  double* v = perdure_ipv_alloc(cells * sizeof *v);
  double* r = malloc(cells * sizeof *r);
  for (long i = 0; i < cells; ++i) {
    u[i] = i % 13;
    v[i] = i % 7;
    r[i] = i % 5;
  }
  const perdure_ipv_object_options stream = {.tier = PERDURE_IPV_STREAM};
  must(perdure_open(words[1], NULL, &pool));
  must(perdure_scalar(pool, "done", &done, sizeof done));
  must(perdure_ipv_open(pool, NULL));
  must(perdure_ipv_object("u", u, cells * sizeof *u, &stream));
  must(perdure_ipv_object("v", v, cells * sizeof *v, &stream));
  must(perdure_ipv_restart(NULL));
  for (; done < iterations; ++done) {
    step(u, r, v);
    must(perdure_ipv_persist(NULL));
  }
  double sum = 0;
  for (long i = 0; i < cells; ++i) sum += u[i] * (double)(i % 3) + v[i];
  printf("%.17g\n", sum);
  must(perdure_ipv_close());
  must(perdure_close(pool));
  free(r);
  return 0;
}
