// SPDX-License-Identifier: BSD-3-Clause
/* Rows of which an iteration overwrites a part, which perdure-clang --ipv does not announce:
 * members of structs, one after the other, and a store on a condition.
 * usage: parts POOL */
#include <stdio.h>
#include <stdlib.h>

#include "perdure/perdure_ipv.h"

enum { n = 2000, steps = 20 };

struct point {
  double x, y;
  long tag;
};

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

static void iterate(struct point* p, double* u, int step) {
  for (int i = 0; i < n; ++i) p[i].y = p[i].x * 0.5 + step;
  for (int i = 0; i < n; ++i) {
    if ((i + step) % 3 == 0) u[i] += p[i].y;
  }
  for (int i = n - 1; i >= 0; --i) p[i].tag++;
}

int main(int count, char** words) {
  if (count != 2) return 2;
  struct point* p = perdure_ipv_alloc(n * sizeof *p);
  double* u = perdure_ipv_alloc(n * sizeof *u);
  if (p == NULL || u == NULL) return 1;
  for (int i = 0; i < n; ++i) {
    p[i] = (struct point){i, 2 * i, i};
    u[i] = i;
  }
  perdure_pool* pool = NULL;
  check(perdure_open(words[1], NULL, &pool));
  check(perdure_ipv_open(pool, NULL));
  check(perdure_ipv_object("p", p, n * sizeof *p, NULL));
  check(perdure_ipv_object("u", u, n * sizeof *u, NULL));
  check(perdure_ipv_restart(NULL));
  for (int step = 0; step < steps; ++step) {
    iterate(p, u, step);
    check(perdure_ipv_persist(NULL));
  }
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += u[i] + p[i].y + (double)p[i].tag;
  printf("%.17g\n", sum);
  check(perdure_ipv_close());
  check(perdure_close(pool));
  return 0;
}
