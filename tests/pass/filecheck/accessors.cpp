// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clangxx -std=c++20 -O2 %s | %FileCheck %s
// After inlining, what std::vector and accessors hide is seen.
#include <algorithm>
#include <memory>
#include <vector>

struct Field {
  std::vector<double> values;
  std::unique_ptr<double[]> change;
  long pitch;
  long at(long i, long j) const { return j * pitch + i; }
};

// CHECK-LABEL: define {{.*}}@_Z3addR5Field(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void add(Field& field) {
  for (long j = 1; j < 100; ++j)
    for (long i = 1; i < field.pitch - 1; ++i)
      field.values[field.at(i, j)] += field.change[field.at(i, j)];
}

// CHECK-LABEL: define {{.*}}@_Z5clearR5Field(
// CHECK: call {{.*}}@perdure_ipv_box_begin(
void clear(Field& field) {
  std::fill(field.values.begin(), field.values.end(), 0.0);
}

// Bounds are checked: several exits.
// CHECK-LABEL: define {{.*}}@_Z7checkedR5Field(
// CHECK-NOT: @perdure_ipv_box_begin
// CHECK: ret void
void checked(Field& field) {
  for (long i = 0; i < field.pitch; ++i) field.values.at(i) += 1;
}

void unknown();

// CHECK-LABEL: define {{.*}}@_Z6throwsR5Field(
// CHECK-NOT: @perdure_ipv_box_begin
// CHECK: ret void
void throws(Field& field) {
  for (long i = 0; i < field.pitch; ++i) {
    field.values[i] += 1;
    try {
      unknown();
    } catch (int) {
    }
  }
}
