// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
#include <stdlib.h>
void use(double*);
void keep(const double*);

// Memory that somebody else knows of may be an object.
// CHECK-LABEL: define {{.*}}@known(
// CHECK: call {{.*}}@perdure_ipv_row_begin(
void known(long n) {
  double* u = malloc(n * sizeof *u);
  use(u);
  for (long i = 0; i < n; ++i) u[i] += 1;
  use(u);
}

// This block is its own: u needs no test against it.
// CHECK-LABEL: define {{.*}}@against_local(
// CHECK: call {{.*}}@perdure_ipv_row_begin(
void against_local(double* u, long n) {
  double* v = malloc(n * sizeof *v);
  for (long i = 0; i < n; ++i) v[i] = i;
  for (long i = 0; i < n; ++i) u[i] += v[i] * v[i];
  free(v);
}
