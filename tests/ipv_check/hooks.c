// SPDX-License-Identifier: BSD-3-Clause
/* A loop over a field of planes x rows x columns numbers, with the hooks of perdure_ipv_abi.h
 * placed by hand, and mistakes that are planted by the name in the first argument:
 *
 *   none        the rules are kept
 *   rows        the same, rows in descending order, overlapping ones, and ones within a box
 *   skip        in iteration 50 a plane is announced and not stored to
 *   late        a load after the update goes where loads before it go
 *   partial     a row is not wholly stored to
 *   stencil     a nest reads the neighbour that it has not updated yet
 *   unannounced a store within a nest, beyond what was announced
 *   flushed     a store to what perdure_flush_async() was given
 *   unended     nest_end is missing
 *   committed   a store goes where only loads go
 *   outside     a row sticks out of the object
 *
 * A mistake is in a line that is marked with its name. Prints the sum of the field. The second
 * argument is the exit code, or "_exit". With WITH_POOL it is linked with libperdure and opens a
 * pool, as a program does that is not only checked.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

enum { planes = 6, rows = 5, columns = 20, plane = rows * columns, cells = planes * plane };
enum { iterations = 60, wrong_iteration = 50 };

#define AT(difference, place) (*(double*)((char*)&(place) + (difference)))

static double* u;
static const char* mistake;
static int iteration;

static int is(const char* name) {
  return strcmp(mistake, name) == 0;
}

static void update_row(double* row, int count, struct perdure_ipv_row at) {
  for (int i = 0; i < count; ++i) {
    row[i] = 0.5 * AT(at.load, row[i]) + iteration;
  }
}

static void update_plane(int k) {
  double* first = u + k * plane;
  const size_t bytes = plane * sizeof *u;
  struct perdure_ipv_row at = perdure_ipv_row_begin(first, bytes);
  if (is("skip") && iteration == wrong_iteration && k == 3) {
    perdure_ipv_row_end(first, bytes); /* MISTAKE skip */
    return;
  }
  int count = plane;
  if (is("partial")) count = plane - 1;
  update_row(first, count, at);
  if (is("late")) first[0] += AT(at.load, first[1]);     /* MISTAKE late */
  if (is("committed")) AT(at.load, first[1]) = 1;        /* MISTAKE committed */
  if (is("unannounced") && k == 1) u[4 * plane + 7] = 1; /* MISTAKE unannounced */
  perdure_ipv_row_end(first, bytes);                     /* MISTAKE partial */
}

static void sweep_stencil(void) {
  for (int j = 0; j < planes * rows; ++j) {
    double* row = u + j * columns;
    struct perdure_ipv_row at = perdure_ipv_row_begin(row, columns * sizeof *u);
    for (int i = 0; i + 1 < columns; ++i) {
      double right = row[i + 1]; /* MISTAKE stencil */
      row[i] = AT(at.load, row[i]) + right;
    }
    row[columns - 1] = AT(at.load, row[columns - 1]);
    perdure_ipv_row_end(row, columns * sizeof *u);
  }
  perdure_ipv_nest_end(u);
}

/* Rows 1 and 2 of all planes at once, then planes from the last one, and a row twice. */
static void sweep_in_other_orders(void) {
  const size_t counts[3] = {columns * sizeof *u, 2, planes};
  const size_t strides[3] = {1, columns * sizeof *u, plane * sizeof *u};
  double* first = u + columns;
  struct perdure_ipv_row at = perdure_ipv_box_begin(first, 3, counts, strides);
  for (int k = 0; k < planes; ++k) {
    for (int j = 0; j < 2; ++j) update_row(first + k * plane + j * columns, columns, at);
  }
  perdure_ipv_box_end(first, 3, counts, strides);
  perdure_ipv_nest_end(u);
  for (int k = planes - 1; k >= 0; --k) update_plane(k);
  double* twice = u + plane - 3;
  at = perdure_ipv_row_begin(twice, 9 * sizeof *u);
  update_row(twice, 9, at);
  perdure_ipv_row_end(twice, 9 * sizeof *u);
  perdure_ipv_nest_end(u);
}

static void sweep(void) {
  const int is_reversed = is("rows") && iteration % 3 == 0;
  /* The first and the last plane are not part of the nest: their contents are copied. */
  for (int k = 1; k < planes - 1; ++k) update_plane(is_reversed ? planes - 1 - k : k);
  if (is("outside")) {
    double* last = u + cells - 2;
    perdure_ipv_row_begin(last, 3 * sizeof *u); /* MISTAKE outside */
  }
  if (!is("unended")) perdure_ipv_nest_end(u);
}

static double sum(void) {
  double all = 0;
  for (int i = 0; i < cells; ++i) all += u[i];
  return all;
}

static void iterate(void) {
  if (is("stencil")) {
    sweep_stencil();
  } else if (is("rows") && iteration % 4 == 0) {
    sweep_in_other_orders();
  } else {
    sweep();
  }
  if (is("unended")) return;
  if (is("flushed")) {
    perdure_flush_async(u, plane * sizeof *u);
    u[5] = 0; /* MISTAKE flushed */
  }
  if (iteration % 7 == 0) u[3] += sum() * 1e-6; /* nothing announces it, and nothing need */
}

int main(int argc, char** argv) {
  uint64_t version = 0;
  perdure_pool* pool = NULL;
  mistake = argc > 1 ? argv[1] : "none";
  u = perdure_ipv_alloc(cells * sizeof *u);
  for (int i = 0; i < cells; ++i) u[i] = i;
#ifdef WITH_POOL
  if (perdure_open("pool", NULL, &pool) != 0) return 1;
#endif
  if (perdure_ipv_open(pool, NULL) != 0 ||
      perdure_ipv_object("u", u, cells * sizeof *u, NULL) != 0 ||
      perdure_ipv_restart(&version) != 0) {
    return 1;
  }
  for (iteration = 1; iteration <= iterations; ++iteration) {
    iterate();
    if (perdure_ipv_persist(&version) != 0) return 1; /* MISTAKE unended */
  }
  perdure_ipv_close();
  printf("%llu versions, sum %.12g\n", (unsigned long long)version, sum());
  perdure_ipv_free(u);
#ifdef WITH_POOL
  perdure_close(pool);
#endif
  fflush(stdout);
  if (argc > 2 && strcmp(argv[2], "_exit") == 0) _exit(0);
  return argc > 2 ? atoi(argv[2]) : 0;
}
