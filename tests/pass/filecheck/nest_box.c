// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: %clang -O3 -mavx2 %s | %FileCheck %s
// RUN: PERDURE_IPV_EXPLAIN=%t.json %clang -g1 -O2 %s > /dev/null && \
// RUN:   %FileCheck --check-prefix=WHY --input-file=%t.json %s
// The rows of a nest are one box where all of it is known in front of it.
#include <string.h>

// CHECK-LABEL: define {{.*}}@box(
// CHECK: call {{.*}}@perdure_ipv_out_of_line.box_find(
// CHECK-DAG: call {{.*}}@perdure_ipv_out_of_line.box_begin(
// CHECK-DAG: call {{.*}}@perdure_ipv_out_of_line.row_end(
// CHECK-DAG: call {{.*}}@perdure_ipv_row_begin(
// CHECK-DAG: call {{.*}}@perdure_ipv_out_of_line.box_end(
// WHY-DAG: "function":"box"{{.*}}"kind":"nest"{{.*}}"tier":"box"
void box(double* u, const double* rhs, long nk, long nj, long ni) {
  for (long k = 1; k < nk; ++k)
    for (long j = 1; j < nj; ++j)
      for (long i = 1; i < ni - 1; ++i) u[(k * nj + j) * ni + i] += rhs[(k * nj + j) * ni + i];
}

// CHECK-LABEL: define {{.*}}@clear(
// CHECK: call {{.*}}@perdure_ipv_out_of_line.box_find(
// CHECK: call void @llvm.memset
// WHY-DAG: "function":"clear"{{.*}}"kind":"nest"{{.*}}"tier":"box"
void clear(double* u, long rows, long pitch, long n) {
  for (long j = 0; j < rows; ++j) memset(u + j * pitch, 0, n * sizeof *u);
}

// One row is no box.
// CHECK-LABEL: define {{.*}}@one_row(
// CHECK-NOT: box
// CHECK: ret void
void one_row(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// CHECK-LABEL: define {{.*}}@two_rows(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"two_rows"{{.*}}"no_box":{{.*}}"B1","why":"is one of several rows
void two_rows(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
    for (long i = 0; i < n; ++i) u[(j + rows) * n + i] -= 1;
  }
}

// CHECK-LABEL: define {{.*}}@leave_between_rows(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"leave_between_rows"{{.*}}"no_box":{{.*}}"B1","why":"the loop around
void leave_between_rows(double* u, const double* stop, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (stop[j] > 7) return;
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// CHECK-LABEL: define {{.*}}@triangle(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"triangle"{{.*}}"no_box":{{.*}}"B1","why":"its length is not the same
void triangle(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < j; ++i) u[j * n + i] += 1;
}

// CHECK-LABEL: define {{.*}}@some_rows(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"some_rows"{{.*}}"no_box":{{.*}}"B1","why":"is a condition of its row"
void some_rows(double* u, const double* wanted, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (wanted[j] > 0)
      for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// CHECK-LABEL: define {{.*}}@by_list(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"by_list"{{.*}}"no_box":{{.*}}"B1","why":"its rows are not
void by_list(double* u, const int* list, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[list[j] * n + i] += 1;
}

// What is found on the way may be anywhere.
// CHECK-LABEL: define {{.*}}@reads_by_list(
// CHECK-NOT: @perdure_ipv_out_of_line.box_find(
// CHECK: ret void
// WHY-DAG: "function":"reads_by_list"{{.*}}"no_box":{{.*}}"B3","why":"its addresses are
void reads_by_list(double* u, const double* v, const int* list, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[j * n + i] += v[list[j] * n + i];
}
