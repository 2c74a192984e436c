// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: %clang -O2 -fopenmp %s | %FileCheck %s
// RUN: %clang -O2 -fopenmp -DREFUSED %s | %FileCheck --check-prefix=REFUSED %s
// RUN: PERDURE_IPV_EXPLAIN=%t.json %clang -g1 -O2 -fopenmp -DREFUSED %s > /dev/null && \
// RUN:   %FileCheck --check-prefix=WHY --input-file=%t.json %s
// RUN: PERDURE_IPV_EXPLAIN=%t2.json %clang -g1 -O2 -fopenmp %s > /dev/null && \
// RUN:   %FileCheck --check-prefix=BOX --input-file=%t2.json %s
// The rows of a parallel loop are a box, announced before the team is called, and ended after it.
// Around it there are rows.

long omp_get_thread_num(void);
void unknown(double*);

#ifndef REFUSED
// BOX-DAG: "base":{{.*}}"function":"threads.omp_outlined"{{.*}}"kind":"nest"{{.*}}"tier":"box"
// BOX-DAG: "base":{{.*}}"function":"columns.omp_outlined"{{.*}}"kind":"nest"{{.*}}"tier":"box"
// BOX-DAG: "base":{{.*}}"function":"sums.omp_outlined"{{.*}}"kind":"nest"{{.*}}"tier":"box"
// BOX-DAG: "base":{{.*}}"function":"clears.omp_outlined"{{.*}}"kind":"nest"{{.*}}"tier":"box"
// BOX-DAG: "base":{{.*}}"function":"in_a_region.omp_outlined"{{.*}}"kind":"nest"{{.*}}"tier":"box"

// CHECK-LABEL: define {{.*}}@serial(
// CHECK: call {{.*}}@perdure_ipv_row_begin(
void serial(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// The probe, the team with the box's answer, and the end of the box.
// CHECK-LABEL: define {{.*}}@threads(
// CHECK: [[BOXES:%.*]] = alloca [14 x i64]
// CHECK: call void @threads.omp_outlined.serial({{.*}}, ptr {{.*}}[[BOXES]])
// CHECK: @__kmpc_fork_call({{.*}}, i32 3, {{.*}}@threads.omp_outlined.team, {{.*}}[[BOXES]])
// CHECK: call void @perdure_ipv_box_end_past_cache(
// CHECK: call void @perdure_ipv_box_end(
// CHECK: call void @perdure_ipv_nest_end(
void threads(double* u, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// The probe computes and announces, and touches nothing of u.
// CHECK-LABEL: define internal {{.*}}@threads.omp_outlined.serial(
// CHECK: call { i64, i64 } @perdure_ipv_extent(
// CHECK: call { i64, i64 } @perdure_ipv_box_begin(
// CHECK-NOT: double
// CHECK: ret void

// Threads hear of no row by themselves: there is one call where a part is stored past the cache,
// and one fence.
// CHECK-LABEL: define internal {{.*}}@threads.omp_outlined.team(
// CHECK-NOT: @perdure_ipv_row
// CHECK: movnt{{.*}}!perdure.past_cache
// CHECK-NOT: @perdure_ipv_row
// CHECK: call void @perdure_ipv_box_part(
// CHECK: store atomic i64 1
// CHECK: call void @perdure_ipv_box_fence(

void columns(double* restrict u, const double* r, long rows, long n) {
#pragma omp parallel for
  for (long j = rows - 2; j > 0; --j)
    for (long i = 1; i < n - 1; ++i) u[j * n + i] += r[j * n + i];
}

double sums(double* u, long n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; ++i) sum += u[i] *= 0.5;
  return sum;
}

void clears(double* u, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) u[i] = 0;
}

void in_a_region(double* u, long n) {
#pragma omp parallel
#pragma omp for
  for (long i = 0; i < n; ++i) u[i] *= 0.5;
}

#else
// REFUSED-NOT: perdure_ipv_box_begin

// WHY-DAG: "function":"dynamic.omp_outlined"{{.*}}"why":"its loop is shared out as it runs"
void dynamic(double* u, long n) {
#pragma omp parallel for schedule(dynamic)
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// WHY-DAG: "function":"pieces.omp_outlined"{{.*}}"why":"its loop is shared out in pieces of
void pieces(double* u, long n) {
#pragma omp parallel for schedule(static, 100)
  for (long i = 0; i < n; ++i) u[i] += 1;
}

// WHY-DAG: "function":"two_loops.omp_outlined"{{.*}}"why":"several loops in it are shared out"
void two_loops(double* u, double* v, long n) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (long i = 0; i < n; ++i) u[i] += 1;
#pragma omp for
    for (long i = 0; i < n; ++i) v[i] += 1;
  }
}

// WHY-DAG: "function":"by_hand.omp_outlined"{{.*}}"why":"no loop in it is shared out"
void by_hand(double* u, long n) {
#pragma omp parallel
  for (long i = omp_get_thread_num() * n; i < (omp_get_thread_num() + 1) * n; ++i) u[i] += 1;
}

extern _Thread_local double* own;
// WHY-DAG: "function":"each_its_own.omp_outlined"{{.*}}"why":"it uses a variable of each thread"
void each_its_own(long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) own[i] += 1;
}

// WHY-DAG: "function":"neighbours.omp_outlined"{{.*}}"B3"{{.*}}"why":"reads another element
void neighbours(double* u, long n) {
#pragma omp parallel for
  for (long i = 1; i < n; ++i) u[i] = u[i] + u[i - 1];
}

// WHY-DAG: "function":"calls.omp_outlined"{{.*}}"obligation":"B3"{{.*}}"why":"calls unknown"
void calls(double* u, double* v, long rows, long n) {
#pragma omp parallel for
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
    unknown(v);
  }
}

// WHY-DAG: "function":"some_rows.omp_outlined"{{.*}}"obligation":"B1"
void some_rows(double* u, const double* r, long rows, long n) {
#pragma omp parallel for
  for (long j = 0; j < rows; ++j) {
    if (r[j] > 0)
      for (long i = 0; i < n; ++i) u[j * n + i] += 1;
  }
}

// WHY-DAG: "function":"locked.omp_outlined"{{.*}}"why":"it calls __kmpc_critical"
void locked(double* u, double* sum, long rows, long n) {
#pragma omp parallel for
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] += 1;
#pragma omp critical
    *sum += u[j * n];
  }
}

// WHY-DAG: "function":"gathers.omp_outlined"{{.*}}"B3"{{.*}}"why":"its addresses are not known
void gathers(double* u, const double* r, const int* index, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) u[i] += r[index[i]];
}
#endif
