// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: %clang -O2 -flto %s | %FileCheck %s --check-prefix=LTO
// RUN: %objclang -w -O2 -S %s -o - | %FileCheck %s --check-prefix=CODE
// A third version of the loop stores past the cache, its vectors word by word. The marks of the two
// steps are gone.

// CHECK-NOT: perdure_ipv_past_cache
// LTO-NOT: movnti

// CHECK-LABEL: define {{.*}}@update(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK: extractelement <2 x i64> {{.*}}, i64 1
// CHECK: call void asm sideeffect "movntiq $1, ($0)"
// CHECK: call {{.*}}@perdure_ipv_box_end(
// CODE-LABEL: update:
// CODE: movntiq
void update(double* u, const double* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < columns; i++) u[j * columns + i] += r[j * columns + i];
  }
}

// Two stores in an iteration.
// CHECK-LABEL: define {{.*}}@pairs(
// CHECK: movntiq
// CHECK: call {{.*}}@perdure_ipv_box_end(
// CODE-LABEL: pairs:
// CODE: movnt
struct pair {
  double re, im;
};
void pairs(struct pair* u, const double* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < columns; i++) {
      u[j * columns + i].re = 2 * r[j * columns + i];
      u[j * columns + i].im = 3 * r[j * columns + i];
    }
  }
}

// Of an array that is updated and one that is only stored to, which may be no object, and may be
// read soon, the first goes past the cache.
// CHECK-LABEL: define {{.*}}@both(
// CHECK-COUNT-3: call void asm sideeffect "movntiq $1, ($0)"
// CHECK-NOT: movntiq
// CHECK: call {{.*}}@perdure_ipv_box_end(
void both(double* u, double* copy, const double* factor, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < columns; i++) {
      const double value = u[j * columns + i] * factor[i];
      u[j * columns + i] = value;
      copy[j * columns + i] = value;
    }
  }
}

// The last number first.
// CHECK-LABEL: define {{.*}}@down(
// CHECK: movntiq
// CHECK: call {{.*}}@perdure_ipv_box_end(
void down(double* u, const double* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = columns - 1; i >= 0; i--) u[j * columns + i] = r[i] + 1;
  }
}

// There is no non-temporal store of a byte.
// CHECK-LABEL: define {{.*}}@bytes(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK-NOT: movnti
// CHECK: ret void
void bytes(unsigned char* u, const unsigned char* r, long rows, long columns) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < columns; i++) u[j * columns + i] ^= r[j * columns + i];
  }
}

// The runtime never wants rows of less than 512 bytes past the cache.
// CHECK-LABEL: define {{.*}}@short_rows(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
// CHECK-NOT: movnti
// CHECK: ret void
void short_rows(double* u, const double* r, long rows) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < 63; i++) u[j * 63 + i] += r[j * 63 + i];
  }
}

// CHECK-LABEL: define {{.*}}@just_long_enough(
// CHECK: movntiq
void just_long_enough(double* u, const double* r, long rows) {
  for (long j = 0; j < rows; j++) {
    for (long i = 0; i < 64; i++) u[j * 64 + i] += r[j * 64 + i];
  }
}
