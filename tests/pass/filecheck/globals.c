// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: for o in -O1 -O2 -O3; do \
// RUN:   PERDURE_PASS=ipv %clang $o %I %s | %FileCheck --check-prefixes=CHECK,ROWS %s || exit 1; \
// RUN: done
// RUN: PERDURE_PASS=ipv %clang -O0 %I %s | %FileCheck %s
// Static arrays that are objects get pages of their own: large ones, large pages.
#include "perdure/perdure_ipv.h"

// CHECK-DAG: @small = {{.*}}global <{ [1000 x double], [192 x i8] }> zeroinitializer, align 4096
// CHECK-DAG: @large = {{.*}}global [1048576 x double] zeroinitializer, align 2097152
// CHECK-DAG: @named = {{.*}}global <{ [3 x double], [4072 x i8] }> <{{.*}}, align 4096
// CHECK-DAG: @other = {{.*}}global [1000 x double] zeroinitializer, align 16
double small[1000];
double large[1 << 20];
PERDURE_IPV_ARRAY double named[3] = {1, 2, 3};
double other[1000];

void objects(void) {
  perdure_ipv_object("small", small, sizeof small, 0);
  perdure_ipv_object("large", &large[0], sizeof large, 0);
}

// Two arrays may lie in one object: the other one is in the box's list.
// CHECK-LABEL: define {{.*}}@add(
// ROWS: store i64 ptrtoint (ptr @other to i64)
// ROWS: call {{.*}}@perdure_ipv_box_begin(
void add(void) {
  for (int i = 0; i < 1000; ++i) small[i] += other[i];
}
