// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: %clang -O3 %s | %FileCheck %s
// The loop over components is unrolled where the optimiser does that.
// Five components, which together are contiguous.
// CHECK-LABEL: define {{.*}}@components(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void components(double* u, const double* rhs, long n) {
  for (long i = 1; i < n; ++i)
    for (int m = 0; m < 5; ++m) u[5 * i + m] += rhs[5 * i + m];
}
