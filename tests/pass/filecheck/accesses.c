// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O0 -fopenmp %s | %FileCheck --check-prefixes=NONE %s
// RUN: for o in -O1 -O2 -O3 "-O3 -mavx2" "-O2 -fno-vectorize"; do \
// RUN:   %clang $o -fopenmp %s | %FileCheck %s || exit 1; done
#include <stdlib.h>
#include <string.h>

typedef double vector __attribute__((vector_size(32)));
struct particle {
  double position[3], mass;
};
struct field {
  double* values;
  long rows, pitch;
};
void use(void*);
double table[4096];

// CHECK-LABEL: define {{.*}}@scalars(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void scalars(float* u, const float* v, long n) {
  for (long i = 0; i < n; ++i) u[i] += v[i];
}

// CHECK-LABEL: define {{.*}}@vectors(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void vectors(vector* u, const vector* v, long n) {
  for (long i = 0; i < n; ++i) u[i] += v[i];
}

// CHECK-LABEL: define {{.*}}@sets(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call void @llvm.memset
void sets(double* u, long rows) {
  for (long j = 0; j < rows; ++j) memset(u + j * 200, 0, 1000);
}

// CHECK-LABEL: define {{.*}}@copies(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call void @llvm.memcpy
void copies(double* u, const double* v, long rows) {
  for (long j = 0; j < rows; ++j) memcpy(u + j * 200, v, 1600);
}

// CHECK-LABEL: define {{.*}}@moves(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call void @llvm.memmove
void moves(double* u, const double* v, long rows) {
  for (long j = 0; j < rows; ++j) memmove(u + j * 200, v + j * 200, 1600);
}

// Not inlined: the callee has the row.
// CHECK-LABEL: define {{.*}}@row_of(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
__attribute__((noinline)) void row_of(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] = 2 * u[i];
}

// CHECK-LABEL: define {{.*}}@calls_of_calls(
// CHECK-NOT: perdure_ipv_box_begin
// CHECK: ret void
void calls_of_calls(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) row_of(u + j * n, n);
}

// The pointer comes out of a struct, and from a pointer to a pointer.
// CHECK-LABEL: define {{.*}}@passed_on(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void passed_on(struct field* field) {
  double* u = field->values;
  const long n = field->pitch;
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// CHECK-LABEL: define {{.*}}@passed_by_address(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void passed_by_address(double** where, long n) {
  double* u = *where;
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// CHECK-LABEL: define {{.*}}@structs(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void structs(struct particle* p, long n) {
  for (long i = 0; i < n; ++i) {
    p[i].position[0] += 1;
    p[i].position[1] += 1;
    p[i].position[2] += 1;
    p[i].mass = 0;
  }
}

// CHECK-LABEL: define {{.*}}@global(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void global(void) {
  for (int i = 0; i < 4096; ++i) table[i] += 1;
}

// CHECK-LABEL: define {{.*}}@heap(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void heap(long n) {
  double* u = malloc(n * sizeof *u);
  use(u);
  for (long i = 0; i < n; ++i) u[i] *= 2;
  use(u);
}

// CHECK-LABEL: define {{.*}}@parallel(
void parallel(double* u, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// The bodies of parallel regions are left alone; what comes after them is not.
// CHECK-LABEL: define {{.*}}@both(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void both(double* u, double* v, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) v[i] += 1;
  for (long i = 0; i < n; ++i) u[i] += 1;
}
// CHECK: define {{.*}}.omp_outlined(
// CHECK-NOT: call {{.*}}perdure_ipv_box_begin

// NONE: define {{.*}}@scalars(
// NONE-NOT: call {{.*}}@perdure_ipv_
// NONE: define {{.*}}@both.omp_outlined
// NONE-NOT: call {{.*}}@perdure_ipv_
