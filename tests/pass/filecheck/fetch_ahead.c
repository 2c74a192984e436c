// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// Loops that store past the cache ask for what they will load: as far ahead as the runtime says
// where the next row begins at most 512 bytes after the end of this one, else a sixteenth of the
// row. Of a loop with vectors, what is left of a row does not.

// CHECK-LABEL: define {{.*}}@update(
// CHECK: [[MOST:%.*]] = load i64, ptr @perdure_ipv_fetch_ahead
// CHECK: [[PART:%.*]] = udiv i64 {{%.*}}, 16
// CHECK: [[SHARE:%.*]] = and i64 [[PART]], -64
// CHECK: [[LEAST:%.*]] = call i64 @llvm.umin.i64(i64 [[SHARE]], i64 [[MOST]])
// CHECK: [[NEAR:%.*]] = icmp ule i64 {{%.*}}, 512
// CHECK: [[AHEAD:%.*]] = select i1 [[NEAR]], i64 [[MOST]], i64 [[LEAST]]
// CHECK: [[AT:%.*]] = getelementptr i8, ptr {{%.*}}, i64 [[AHEAD]]
// CHECK: call void @llvm.prefetch.p0(ptr [[AT]], i32 0, i32 3, i32 1)
// CHECK: call void @llvm.prefetch.p0(
// CHECK: store <2 x i64> {{.*}}!nontemporal
// CHECK-NOT: llvm.prefetch
// CHECK: ret void
void update(double* u, const double* r, long rows, long columns, long pitch) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < columns; i++) u[j * pitch + i] += r[j * pitch + i];
  }
}

// The row that is read stays where it is.
// CHECK-LABEL: define {{.*}}@down(
// CHECK: [[MOST:%.*]] = load i64, ptr @perdure_ipv_fetch_ahead
// CHECK: [[LEAST:%.*]] = call i64 @llvm.umin.i64(i64 {{%.*}}, i64 [[MOST]])
// CHECK-NOT: select {{.*}}[[MOST]]
// CHECK: [[AHEAD:%.*]] = sub i64 0, [[LEAST]]
// CHECK: [[AT:%.*]] = getelementptr i8, ptr {{%.*}}, i64 [[AHEAD]]
// CHECK: call void @llvm.prefetch.p0(ptr [[AT]]
// CHECK: ret void
void down(double* u, const double* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = columns - 1; i >= 0; i--) u[j * columns + i] = r[i] + 1;
  }
}

// Neighbours share a line.
// CHECK-LABEL: define {{.*}}@neighbours(
// CHECK: call void @llvm.prefetch.p0(
// CHECK-NOT: llvm.prefetch
// CHECK: ret void
void neighbours(double* u, const double* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = 1; i < columns - 1; i++) {
      u[j * columns + i] = r[j * columns + i - 1] + r[j * columns + i + 1];
    }
  }
}

// So many are not asked for.
// CHECK-LABEL: define {{.*}}@many(
// CHECK-NOT: llvm.prefetch
// CHECK: !nontemporal
// CHECK-NOT: llvm.prefetch
// CHECK: ret void
void many(double* u, const double* a, const double* b, const double* c, const double* d,
          const double* e, long n) {
  for (long i = 0; i < n; i++) u[i] = a[i] + b[i] + c[i] + d[i] + e[i];
}
