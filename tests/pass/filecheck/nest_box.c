// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: %clang -O3 -mavx2 %s | %FileCheck %s
// RUN: PERDURE_IPV_EXPLAIN=%t.json %clang -g1 -O2 %s > /dev/null && \
// RUN:   %FileCheck --check-prefix=WHY --input-file=%t.json %s
// A nest is one box where all of it is known in front of it; else the largest loop of it that is.
#include <string.h>

// The runtime is asked only where it may lie in an object, and is large.
// CHECK-LABEL: define {{.*}}@box(
// CHECK: load i64, ptr @perdure_ipv_low
// CHECK: load i64, ptr @perdure_ipv_high
// CHECK: load i64, ptr @perdure_ipv_box_bytes_min
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call {{.*}}@perdure_ipv_box_end(
// CHECK-NOT: perdure_ipv_box_begin
// CHECK: ret void
// WHY-DAG: "function":"box"{{.*}}"kind":"nest"{{.*}}"line":[[#@LINE+2]]
void box(double* u, const double* rhs, long nk, long nj, long ni) {
  for (long k = 1; k < nk; ++k)
    for (long j = 1; j < nj; ++j)
      for (long i = 1; i < ni - 1; ++i) u[(k * nj + j) * ni + i] += rhs[(k * nj + j) * ni + i];
}

// CHECK-LABEL: define {{.*}}@clear(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call void @llvm.memset
// CHECK: call {{.*}}@perdure_ipv_box_end(
// WHY-DAG: "function":"clear"{{.*}}"kind":"nest"
void clear(double* u, long rows, long pitch, long n) {
  for (long j = 0; j < rows; ++j) memset(u + j * pitch, 0, n * sizeof *u);
}

// CHECK-LABEL: define {{.*}}@one_row(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void one_row(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// Each of the inner loops is a box.
// CHECK-LABEL: define {{.*}}@two_rows(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: call {{.*}}@perdure_ipv_box_end(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// WHY-DAG: "function":"two_rows"{{.*}}"S2"{{.*}}"why":"reads another element of the array
void two_rows(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
    for (long i = 0; i < n; ++i) u[(j + rows) * n + i] -= 1;
  }
}

// CHECK-LABEL: define {{.*}}@leave_between_rows(
// WHY-DAG: "function":"leave_between_rows"{{.*}}"B1"{{.*}}"why":"the loop around
void leave_between_rows(double* u, const double* stop, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (stop[j] > 7) return;
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// WHY-DAG: "function":"triangle"{{.*}}"B1"{{.*}}"why":"its length is not the same
void triangle(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < j; ++i) u[j * n + i] += 1;
}

// WHY-DAG: "function":"some_rows"{{.*}}"B1"{{.*}}"why":"is a condition of its row"
void some_rows(double* u, const double* wanted, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (wanted[j] > 0)
      for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// WHY-DAG: "function":"by_list"{{.*}}"B1"{{.*}}"why":"its rows are not
void by_list(double* u, const int* list, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[list[j] * n + i] += 1;
}

// What is found on the way may be anywhere.
// WHY-DAG: "function":"reads_by_list"{{.*}}"B2"{{.*}}"why":"its addresses are
void reads_by_list(double* u, const double* v, const int* list, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[j * n + i] += v[list[j] * n + i];
}
