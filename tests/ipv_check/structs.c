// SPDX-License-Identifier: BSD-3-Clause
/* A main loop that carries some members of its structs.
 *
 *   cells       on the heap: position.x and faces[] carried, position.y rewritten, mark read only
 *   sites       static: value carried, rewritten not
 *   grid        a struct that holds an array of structs: sum and cells[].x carried
 *   plain       numbers, the first half of which is carried
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "perdure/perdure_trace.h"

enum { n = 200, iterations = 6 };

struct vector {
  double x, y;
};
struct cell {
  struct vector position;
  double faces[3];
  long mark;
};
struct site {
  int rewritten;
  float value;
};
struct grid {
  double sum;
  struct vector cells[n];
};

static struct site sites[n];
static struct grid grid;
static double plain[n];

static void iterate(struct cell* cells, long step) {
  for (int i = 0; i < n; ++i) {
    cells[i].position.x += 0.5;
    cells[i].position.y = (double)(cells[i].mark + step);
    for (int f = 0; f < 3; ++f) cells[i].faces[f] += cells[i].position.y;
    sites[i].rewritten = (int)step;
    sites[i].value += (float)sites[i].rewritten;
    grid.cells[i].y = (double)step;
    grid.cells[i].x += grid.cells[i].y;
    plain[i] = (i < n / 2 ? plain[i] : 0) + 1;
  }
  grid.sum += (double)step;
}

int main(void) {
  struct cell* cells = calloc(n, sizeof *cells);
  for (int i = 0; i < n; ++i) cells[i].mark = i;
  for (long step = 1; step <= iterations; ++step) {
    if (perdure_trace_iteration) perdure_trace_iteration((uint64_t)step);
    iterate(cells, step);
  }
  perdure_trace_end();
  printf("%f %f %f\n", cells[n - 1].position.x, (double)sites[1].value, grid.sum);
  free(cells);
  return 0;
}
