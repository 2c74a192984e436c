// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O0 %s | %FileCheck --check-prefix=NONE %s
// RUN: %clang -O0 -Xclang -disable-O0-optnone %s | %FileCheck --check-prefix=NONE %s
// RUN: %clang -O1 %s | %FileCheck --check-prefix=ROWS %s
// RUN: %clang -O2 %s | %FileCheck --check-prefix=ROWS %s
// RUN: %clang -O3 %s | %FileCheck --check-prefix=ROWS %s
// RUN: %clang -Os %s | %FileCheck --check-prefix=ROWS %s
// RUN: %clang -O2 -fno-vectorize -fno-unroll-loops %s | %FileCheck --check-prefix=ROWS %s
// RUN: %clang -O2 -g %s | %FileCheck --check-prefix=ROWS %s
// RUN: PERDURE_PASS=ipv %clang -O2 %s | %FileCheck --check-prefix=NONE %s
// RUN: PERDURE_PASS=ipv %clang -O2 -DMARKED %s | %FileCheck --check-prefix=ROWS %s
// RUN: PERDURE_PASS=ipv %clang -O2 -DCALLED %s | %FileCheck --check-prefix=ROWS %s
// RUN: PERDURE_PASS=trace %clang -O2 -DMARKED %s | %FileCheck --check-prefix=NONE %s
#ifdef CALLED
int perdure_ipv_persist(void*);
void step(void) {
  perdure_ipv_persist(0);
}
#endif
#ifdef MARKED
__attribute__((annotate("perdure_ipv")))
#endif
void scale(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] *= 0.5;
}
// NONE-LABEL: define {{.*}}@scale(
// NONE-NOT: perdure_ipv_box_begin
// ROWS-LABEL: define {{.*}}@scale(
// ROWS: call {{.*}}@perdure_ipv_box_begin(
