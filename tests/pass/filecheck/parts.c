// SPDX-License-Identifier: BSD-3-Clause
// Rows whose iterations do not overwrite all their bytes for certain: other members of a struct,
// stores on a condition. The second version of the loop copies these, and runs for each such row.
// RUN: %clang -O2 -fno-vectorize %s | %FileCheck %s
// RUN: env PERDURE_PASS=ipv-all PERDURE_IPV_EXPLAIN=%t.json %objclang -g -O2 -c -w -o %t.o %s
// RUN: %FileCheck --check-prefix=EXPLAIN %s < %t.json

struct point {
  double x, y;
  long tag;
};

// x is copied, y stored, and between two of them the tag, except after the last one.
// CHECK-LABEL: @one_member(
// CHECK: call { i64, i64 } @perdure_ipv_row_begin(
// CHECK: [[LAST:%.*]] = icmp eq ptr
// CHECK: load i64, {{.*}}, align 1
// CHECK: store i64 {{.*}}, align 1
// CHECK: [[FROM:%.*]] = select i1 [[LAST]]
// CHECK: [[TAG:%.*]] = load i64, ptr [[FROM]], align 1
// CHECK: store i64 [[TAG]], {{.*}}, align 1
// CHECK: store double
// CHECK: call void @perdure_ipv_row_end(
// CHECK-NOT: past_cache
void one_member(struct point* p, long n) {
  for (long i = 0; i < n; ++i) p[i].y = p[i].x * 0.5;
}

// CHECK-LABEL: @conditional(
// CHECK: call { i64, i64 } @perdure_ipv_row_begin(
// CHECK: store i64 {{.*}}, align 1
// CHECK: br i1
// CHECK: store double
// CHECK: call void @perdure_ipv_row_end(
void conditional(double* u, const double* f, long n) {
  for (long i = 0; i < n; ++i) {
    if (f[i] > 0.5) u[i] = f[i] + __builtin_sqrt(f[i] * 3 + 1) / f[i];
  }
}

// All certain: nothing is copied.
// CHECK-LABEL: @whole(
// CHECK: call { i64, i64 } @perdure_ipv_row_begin(
// CHECK-NOT: align 1{{$}}
// CHECK: ret void
void whole(struct point* p, long n) {
  for (long i = 0; i < n; ++i) {
    p[i].x = 1;
    p[i].y = 2;
    p[i].tag = i;
  }
}

// An eighth of an element at least; 8 of 72 bytes are left to the write protection.
struct large {
  double value, others[8];
};
// CHECK-LABEL: @too_little(
// CHECK-NOT: perdure_ipv
// CHECK: ret void
// EXPLAIN: "function":"too_little"{{.*}}"why":"stores cover 8 of the 72 bytes in an iteration"
void too_little(struct large* p, long n) {
  for (long i = 0; i < n; ++i) p[i].value = 1;
}

// A neighbour's member is another element's: the nest is refused.
// CHECK-LABEL: @neighbour(
// CHECK-NOT: row_begin
// CHECK: ret void
double global_x[4];
struct point points[1000];
void neighbour(long n) {
  for (long i = 1; i < n - 1; ++i) points[i].x = points[i - 1].x + points[i + 1].y;
}

// What is read after a store that may not have happened was copied: it is read in the new copy. The
// load in front of it reads the old one.
// CHECK-LABEL: @read_after(
// CHECK: call { i64, i64 } @perdure_ipv_row_begin(
// CHECK: call void @perdure_ipv_row_end(
double read_after(double* restrict u, const double* f, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) {
    if (f[i] > 0.5) u[i] = sum * f[i];
    sum += u[i];
  }
  return sum;
}
