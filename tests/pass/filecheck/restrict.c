// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// u and v may be two parts of one object: nothing may carry an access of v across a hook, and
// v is compared with the object.

// CHECK-LABEL: define {{.*}}@add(
// CHECK-SAME: ptr noundef %0, ptr noundef %1, i64{{.*}} [[FLAGS:#[0-9]+]]
// CHECK: alloca [2 x i64]
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: attributes [[FLAGS]] = {{.*}}noinline
void add(double* restrict u, const double* restrict v, long rows, long n) {
  for (long j = 0; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[j * n + i] += v[i];
}
