// SPDX-License-Identifier: BSD-3-Clause
// Calls that do not stop a nest: of clocks and prints, and of functions of the file that touch
// nothing but what is compared with the object. A nest with a row has a call of nest_end after it.
// RUN: %clang -O2 %s | %FileCheck %s
// RUN: env PERDURE_PASS=ipv-all PERDURE_IPV_EXPLAIN=%t.json %objclang -g -O2 -c -w -o %t.o %s
// RUN: %FileCheck --check-prefix=EXPLAIN %s < %t.json
#include <stdio.h>
#include <time.h>

void elsewhere(void);

// The nest is the loop over rows: it ends after the loop.
// CHECK-LABEL: @clock_and_print(
// CHECK: call {{.*}}@clock_gettime(
// CHECK: call {{.*}}@perdure_ipv_row_begin(
// CHECK: call {{.*}}@printf(
// EXPLAIN-DAG: "alone":false,{{.*}}"function":"clock_and_print"
double clock_and_print(double* u, long rows, long n) {
  double last = 0;
  for (long j = 0; j < rows; ++j) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (long i = 0; i < n; ++i) u[j * n + i] = u[j * n + i] * 0.5 + (double)j;
    printf("row %ld at %ld\n", j, now.tv_sec);
    last = (double)now.tv_nsec;
  }
  return last;
}

// A string that is printed may be in the object.
// EXPLAIN-DAG: "prints_something"{{.*}}"calls printf with a pointer that may lead to it"
void prints_something(double* u, const char* word, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    printf("%s %s\n", word, word);
  }
}

static struct {
  double begun[8], spent[8];
  long count[8];
} timers;

__attribute__((noinline)) static void begin(int timer) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  timers.begun[timer] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
__attribute__((noinline)) static void end(int timer) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  timers.spent[timer] += (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - timers.begun[timer];
  timers.count[timer]++;
}

// EXPLAIN-DAG: "alone":false,{{.*}}"function":"timed"
void timed(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    begin(3);
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    end(3);
  }
}

double total;  // which another file may have made an object: compared with it
__attribute__((noinline)) static void add(double value) {
  total += value;
}
// EXPLAIN-DAG: "alone":false,{{.*}}"function":"compared"{{.*}}"tests":{{[1-9]}}
void compared(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    add(0.5);
  }
}

__attribute__((noinline)) static void scale(double* at, double by) {
  *at *= by;
}
// EXPLAIN-DAG: "given_the_row"{{.*}}"why":"calls scale with a pointer that may lead to it"
void given_the_row(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    scale(&u[j * n], 0.5);
  }
}

__attribute__((noinline)) static void leads_elsewhere(void) {
  elsewhere();
}
// EXPLAIN-DAG: "function":"unknown"{{.*}}"why":"calls leads_elsewhere, which calls elsewhere"
void unknown(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    leads_elsewhere();
  }
}

double** table;
__attribute__((noinline)) static void chases(long j) {
  table[j][0] = 1;
}
// EXPLAIN-DAG: "chasing"{{.*}}"why":"calls chases, which accesses memory that it finds on its way"
void chasing(double* u, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) u[j * n + i] = (double)j;
    chases(j);
  }
}
