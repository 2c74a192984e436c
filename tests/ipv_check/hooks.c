// SPDX-License-Identifier: BSD-3-Clause
/* A loop over a field of planes x rows x columns numbers, with the hooks of perdure_ipv_abi.h
 * placed by hand, and mistakes that are planted by the name in the first argument:
 *
 *   none        the rules are kept
 *   rows        the same, planes in descending order, and boxes that overlap or have gaps
 *   skip        in iteration 50 a plane of the box is not stored to
 *   late        a load after the update goes where loads before it go
 *   partial     planes are not wholly stored to
 *   stencil     a nest reads the neighbour that it has not updated yet
 *   unannounced a store within a nest, beyond what was announced
 *   flushed     a store to what perdure_flush_async() was given
 *   unended     box_end is missing
 *   committed   a store goes where only loads go
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

static void update_row(double* row, int count, struct perdure_ipv_answer at) {
  for (int i = 0; i < count; ++i) {
    row[i] = 0.5 * AT(at.load, row[i]) + iteration;
  }
}

static struct perdure_ipv_box planes_from(int k, int count) {
  const struct perdure_ipv_box box = {u + k * plane,          2,    {plane * sizeof *u, count},
                                      {1, plane * sizeof *u}, NULL, 0};
  return box;
}

static void update_plane(int k, struct perdure_ipv_answer at) {
  double* first = u + k * plane;
  if (is("skip") && iteration == wrong_iteration && k == 3) return;
  int count = plane;
  if (is("partial")) count = plane - 1;
  update_row(first, count, at);
  if (is("late")) first[0] += AT(at.load, first[1]);     /* MISTAKE late */
  if (is("committed")) AT(at.load, first[1]) = 1;        /* MISTAKE committed */
  if (is("unannounced") && k == 1) u[5 * plane + 7] = 1; /* MISTAKE unannounced */
}

static void sweep_stencil(void) {
  const struct perdure_ipv_box all = planes_from(0, planes);
  struct perdure_ipv_answer at = perdure_ipv_box_begin(&all);
  for (int j = 0; j < planes * rows; ++j) {
    double* row = u + j * columns;
    for (int i = 0; i + 1 < columns; ++i) {
      double right = row[i + 1]; /* MISTAKE stencil */
      row[i] = AT(at.load, row[i]) + right;
    }
    row[columns - 1] = AT(at.load, row[columns - 1]);
  }
  perdure_ipv_box_end(&all, 0);
}

/* Rows 1 and 2 of all planes, then plane after plane from the last one, and a few numbers twice. */
static void sweep_in_other_orders(void) {
  const struct perdure_ipv_box box = {
      u + columns, 3, {columns * sizeof *u, 2, planes}, {1, columns * sizeof *u, plane * sizeof *u},
      NULL,        0};
  struct perdure_ipv_answer at = perdure_ipv_box_begin(&box);
  for (int k = 0; k < planes; ++k) {
    for (int j = 0; j < 2; ++j) update_row(u + columns + k * plane + j * columns, columns, at);
  }
  perdure_ipv_box_end(&box, 0);
  for (int k = planes - 1; k >= 0; --k) {
    const struct perdure_ipv_box one = planes_from(k, 1);
    update_plane(k, perdure_ipv_box_begin(&one));
    perdure_ipv_box_end(&one, 0);
  }
  const struct perdure_ipv_box twice = {u + plane - 3, 1, {9 * sizeof *u}, {1}, NULL, 0};
  at = perdure_ipv_box_begin(&twice);
  update_row(u + plane - 3, 9, at);
  perdure_ipv_box_end(&twice, 0);
}

static void sweep(void) {
  const int is_reversed = is("rows") && iteration % 3 == 0;
  /* The first and the last plane are not part of the nest: their contents are copied. */
  const struct perdure_ipv_box inner = planes_from(1, planes - 2);
  const struct perdure_ipv_answer at = perdure_ipv_box_begin(&inner);
  for (int k = 1; k < planes - 1; ++k) update_plane(is_reversed ? planes - 1 - k : k, at);
  if (is("unended")) return;
  if (is("skip")) {
    perdure_ipv_box_end(&inner, 0); /* MISTAKE skip */
  } else {
    perdure_ipv_box_end(&inner, 0); /* MISTAKE partial */
  }
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
