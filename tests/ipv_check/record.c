// SPDX-License-Identifier: BSD-3-Clause
/* A main loop of which it is known what it carries. Each array has 512 numbers.
 *
 *   carried     u = u + f
 *   rewritten   set from u, then read
 *   half        its first half is rewritten, its second half is u's change: carried
 *   table       read only
 *   late        written in iterations 5, 10 and so on, and read in those that follow: carried
 *   first       set in iteration 1 by one statement, and updated by another one later: carried
 *   once        read in iteration 1 as it was before the loop, then rewritten before it is read
 *   result      written; read when the loop has ended
 *   waste       written, never read
 *   total       a scalar that is added to: carried; norm: a scalar that is set: rewritten
 *   heap        a block on the heap, updated: carried
 *   buffer      a block that each iteration allocates, fills, reads and frees: rewritten
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "perdure/perdure_trace.h"

enum { n = 512, iterations = 12 };

static double u[n], rewritten[n], half[n], table[n], late[n], first[n], once[n], result[n];
double waste[n];
static double total;
double norm;

static void update(double* field) {
  for (int i = 0; i < n; ++i) field[i] += 0.5;
}

static void use_buffer(int step) {
  double* buffer = malloc(n * sizeof *buffer);
  for (int i = 0; i < n; ++i) buffer[i] = i + step;
  for (int i = 0; i < n; ++i) norm += buffer[i];
  free(buffer);
}

static void iterate(int step, double* heap) {
  norm = 0;
  for (int i = 0; i < n; ++i) rewritten[i] = u[i] * table[i];
  for (int i = 0; i < n; ++i) u[i] += rewritten[i] + late[i];
  for (int i = 0; i < n / 2; ++i) half[i] = u[i];
  for (int i = n / 2; i < n; ++i) half[i] += half[i - n / 2];
  if (step == 1) {
    for (int i = 0; i < n; ++i) first[i] = u[i];
    for (int i = 0; i < n; ++i) total += once[i];
  } else {
    update(first);
  }
  for (int i = 0; i < n; ++i) once[i] = u[i];
  for (int i = 0; i < n; ++i) norm += once[i];
  if (step % 5 == 0) {
    for (int i = 0; i < n; ++i) late[i] = step;
  }
  update(heap);
  use_buffer(step);
  for (int i = 0; i < n; ++i) result[i] = u[i] - norm;
  for (int i = 0; i < n; ++i) waste[i] = u[i];
  total += norm;
}

int main(void) {
  double* heap = malloc(n * sizeof *heap);
  for (int i = 0; i < n; ++i) heap[i] = table[i] = once[i] = i;
  for (int step = 1; step <= iterations; ++step) {
    if (perdure_trace_iteration) perdure_trace_iteration((uint64_t)step);
    iterate(step, heap);
  }
  perdure_trace_end();
  double sum = total;
  for (int i = 0; i < n; ++i) sum += result[i];
  printf("%.3f\n", sum);
  free(heap);
  return 0;
}
