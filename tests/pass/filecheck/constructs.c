// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: %clang -O1 %s | %FileCheck %s
// RUN: %clang -O3 -mavx2 %s | %FileCheck %s
#include <math.h>
#include <string.h>

// CHECK-LABEL: define {{.*}}@copy(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call void @llvm.memcpy
void copy(double* u, const double* v, long rows, long pitch, long n) {
  for (long j = 0; j < rows; ++j) memcpy(u + j * pitch, v + j * n, n * sizeof *u);
}

// CHECK-LABEL: define {{.*}}@descending(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void descending(double* u, long n) {
  for (long i = n - 1; i >= 0; --i) u[i] = u[i] * 0.5 + 1;
}

// CHECK-LABEL: define {{.*}}@strided(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void strided(double* u, long n) {
  for (long i = 0; i < n; i += 2) u[i] = u[i] * 0.5 + 1;
}

// CHECK-LABEL: define {{.*}}@conditional(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void conditional(double* u, const double* v, long n) {
  for (long i = 0; i < n; ++i)
    if (v[i] > 0) u[i] = v[i];
}

// CHECK-LABEL: define {{.*}}@conditional_load(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void conditional_load(double* u, const double* v, long n) {
  for (long i = 0; i < n; ++i) u[i] = v[i] > 0 ? u[i] * v[i] : v[i];
}

// CHECK-LABEL: define {{.*}}@early_exit(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void early_exit(double* u, const double* v, long n) {
  for (long i = 0; i < n; ++i) {
    if (v[i] > 7) break;
    u[i] = v[i];
  }
}

// The loop around may be left between two rows: each of them is a nest by itself.
// CHECK-LABEL: define {{.*}}@leave_between_rows(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void leave_between_rows(double* u, const double* stop, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (stop[j] > 7) return;
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// CHECK-LABEL: define {{.*}}@after_update(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
double after_update(double* u, const double* v, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) {
    u[i] = u[i] + v[i];
    sum += u[i] * v[i];
  }
  return sum;
}

// Gauss-Seidel: the neighbour is read out of the array that is written.
// CHECK-LABEL: define {{.*}}@stencil_in_place(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void stencil_in_place(double* u, long n) {
  for (long i = 1; i < n - 1; ++i) u[i] = 0.5 * (u[i - 1] + u[i + 1]);
}

// Jacobi: whether v is u is only known when the program runs.
// CHECK-LABEL: define {{.*}}@stencil(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void stencil(double* u, const double* v, long n) {
  for (long i = 1; i < n - 1; ++i) u[i] = 0.5 * (v[i - 1] + v[i + 1]);
}

// w, p and x may be one array, as in waxpby(1, r, beta, p, p).
// CHECK-LABEL: define {{.*}}@waxpby(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void waxpby(double a, const double* x, double b, const double* y, double* w, long n) {
  for (long i = 0; i < n; ++i) w[i] = a * x[i] + b * y[i];
}

// CHECK-LABEL: define {{.*}}@indirect(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void indirect(double* u, const double* v, const int* at, long n) {
  for (long i = 0; i < n; ++i) u[i] = v[at[i]];
}

// CHECK-LABEL: define {{.*}}@scatter(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void scatter(double* u, const double* v, const int* at, long n) {
  for (long i = 0; i < n; ++i) u[at[i]] = v[i];
}

// CHECK-LABEL: define {{.*}}@calls_mathematics(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void calls_mathematics(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] = sin(u[i]) + pow(u[i], 0.3);
}

void unknown(double* u);

// CHECK-LABEL: define {{.*}}@calls_unknown(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void calls_unknown(double* u, long n) {
  for (long i = 0; i < n; ++i) {
    u[i] = 1;
    unknown(u);
  }
}

// Between the rows: each row is a nest by itself.
// CHECK-LABEL: define {{.*}}@calls_between(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call {{.*}}@perdure_ipv_box_end(
// CHECK: call void @unknown(
void calls_between(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
    unknown(u);
  }
}

static double shifted(double* u, long i) {
  return u[i] + 1;
}

// CHECK-LABEL: define {{.*}}@nested_call(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void nested_call(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] = shifted(u, i);
}

struct point {
  double x, y;
  long tag;
};

// CHECK-LABEL: define {{.*}}@whole_struct(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void whole_struct(struct point* p, long n) {
  for (long i = 0; i < n; ++i) {
    p[i].x += 1;
    p[i].tag = i;
    p[i].y = p[i].x;
  }
}

// CHECK-LABEL: define {{.*}}@part_of_struct(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void part_of_struct(struct point* p, long n) {
  for (long i = 0; i < n; ++i) p[i].x += 1;
}

// 32-bit indices that may wrap: where the row lies is not known in front of it.
// CHECK-LABEL: define {{.*}}@wrapping(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
void wrapping(double* u, unsigned first, unsigned n) {
  for (unsigned i = 0; i < n; ++i) u[first + i] += 1;
}

// An object on the stack has no boxes.
// CHECK-LABEL: define {{.*}}@local(
// CHECK-NOT: perdure_ipv
// CHECK: ret double
double local(long n) {
  double u[1000];
  for (long i = 0; i < 1000; ++i) u[i] = i * 0.5;
  unknown(u);
  return u[n];
}
