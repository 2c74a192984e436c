// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 -fopenmp %s | %FileCheck %s
// RUN: PERDURE_IPV_EXPLAIN=%t.json %clang -O2 -fopenmp %s > /dev/null && \
// RUN:   %FileCheck --check-prefix=WHY --input-file=%t.json %s
// No rows in the threads of a parallel region; around it, there are.
// WHY: "kind":"function"{{.*}}"why":"it is the body of a parallel region"

// CHECK-LABEL: define {{.*}}@serial(
// CHECK: call {{.*}}@perdure_ipv_row_begin(
void serial(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] += 1;
}

void parallel(double* u, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) u[i] += 1;
}
// CHECK-LABEL: define {{.*}}.omp_outlined{{.*}}(
// CHECK-NOT: call {{.*}}@perdure_ipv_row_begin(
