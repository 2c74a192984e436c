// SPDX-License-Identifier: BSD-3-Clause
/* Two threads share the rows of a field, in turns (row j is thread j % 2's), iteration for
 * iteration; the first argument plants a mistake as in hooks.c:
 *
 *   none        the rules are kept
 *   neighbour   a thread reads the row of the other one within the nest
 *
 * It marks its iterations for `record` as well: u is carried, flux is not.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

enum { threads = 2, rows = 64, columns = 32, iterations = 20 };

#define AT(difference, place) (*(double*)((char*)&(place) + (difference)))

static double* u;
static double flux[rows * columns];
static int reads_neighbour;
static pthread_barrier_t barrier;

static struct perdure_ipv_box all;
static struct perdure_ipv_answer at;

static void update_row(int j) {
  double* row = u + j * columns;
  for (int i = 0; i < columns; ++i) {
    double own = AT(at.load, row[i]);
    if (reads_neighbour && j + 1 < rows) own += row[i + columns]; /* MISTAKE neighbour */
    row[i] = 0.5 * own + flux[j * columns + i];
  }
}

static void* work(void* which) {
  const int self = (int)(intptr_t)which;
  for (int iteration = 1; iteration <= iterations; ++iteration) {
    pthread_barrier_wait(&barrier);
    for (int j = self; j < rows; j += threads) {
      for (int i = 0; i < columns; ++i) flux[j * columns + i] = u[j * columns + i] * 0.25;
    }
    pthread_barrier_wait(&barrier);
    if (self == 0) at = perdure_ipv_box_begin(&all);
    pthread_barrier_wait(&barrier);
    for (int j = self; j < rows; j += threads) update_row(j);
    pthread_barrier_wait(&barrier);
    if (self == 0) {
      perdure_ipv_box_end(&all, 0);
      perdure_ipv_persist(NULL);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  uint64_t version = 0;
  reads_neighbour = argc > 1 && strcmp(argv[1], "neighbour") == 0;
  u = perdure_ipv_alloc(rows * columns * sizeof *u);
  for (int i = 0; i < rows * columns; ++i) u[i] = i;
  if (perdure_ipv_open(NULL, NULL) != 0 ||
      perdure_ipv_object("u", u, rows * columns * sizeof *u, NULL) != 0 ||
      perdure_ipv_restart(&version) != 0) {
    return 1;
  }
  const struct perdure_ipv_box box = {u, 1, {rows * columns * sizeof *u}, {1}, NULL, 0};
  all = box;
  pthread_barrier_init(&barrier, NULL, threads);
  pthread_t other;
  pthread_create(&other, NULL, work, (void*)(intptr_t)1);
  work(NULL);
  pthread_join(other, NULL);
  perdure_ipv_close();
  double sum = 0;
  for (int i = 0; i < rows * columns; ++i) sum += u[i];
  printf("sum %.12g\n", sum);
  perdure_ipv_free(u);
  return 0;
}
