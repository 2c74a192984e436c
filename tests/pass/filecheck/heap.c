// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
#include <stdlib.h>
void use(double*);
void keep(const double*);

// Two results of an allocator that others know may lie in one object.
// CHECK-LABEL: define {{.*}}@of_an_allocator(
// CHECK: alloca [2 x i64]
// CHECK: call {{.*}}@perdure_ipv_box_begin(
__attribute__((malloc)) double* take(long n);
void of_an_allocator(long n) {
  double* a = take(n);
  double* b = take(n);
  use(a);
  use(b);
  for (long i = 0; i < n; ++i) a[i] = a[i] * 0.5 + b[i];
  use(a);
}

// Memory that somebody else knows of may be an object.
// CHECK-LABEL: define {{.*}}@known(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void known(long n) {
  double* u = malloc(n * sizeof *u);
  use(u);
  for (long i = 0; i < n; ++i) u[i] += 1;
  use(u);
}

// This block is its own: it is in no list of what else the nest touches.
// CHECK-LABEL: define {{.*}}@against_local(
// CHECK-NOT: ipv.others
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void against_local(double* u, long n) {
  double* v = malloc(n * sizeof *v);
  for (long i = 0; i < n; ++i) v[i] = i;
  for (long i = 0; i < n; ++i) u[i] += v[i] * v[i];
  free(v);
}
