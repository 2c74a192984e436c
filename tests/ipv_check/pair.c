// SPDX-License-Identifier: BSD-3-Clause
//
// Heat in a rod by two arrays that are a pair, and breaches of its contract (docs/ipv.md), which
// `perdure ipv check` finds: pair BREACH.
//
//   none       the contract is kept
//   committed  in iteration 7 a store to the array that the last version is in
//   skip       in iteration 13 eight numbers are not overwritten
//   once       in iteration 6 a store that no other iteration makes
//   wave       in iteration 8 what is overwritten is read before
//   walls      the last number, which none stores to, is not the same in both arrays
//
// The line where each is found ends with its name. Prints the sum of the rod.
#include <perdure/perdure_ipv.h>
#include <stdio.h>
#include <string.h>

enum { cells = 1000, steps = 20 };

static const char* breach;
static int now;  // the iteration

static int is(const char* name, int iteration) {
  return now == iteration && strcmp(breach, name) == 0;
}

static void step(double* from, double* to) {
  const int end = cells - (is("skip", 13) ? 9 : 1);
  for (int i = 1; i < end; i++) {
    to[i] = 0.5 * from[i] + 0.25 * from[i - 1];
    to[i] += 0.25 * from[i + 1];  // MISTAKE walls
  }
  if (is("committed", 7)) from[3] = 0;  // MISTAKE committed
  if (is("once", 6)) to[0] = 1;
}

static void step_of_waves(const double* from, double* to) {
  for (int i = 1; i < cells - 1; i++) {
    to[i] = 1.5 * from[i] - 0.5 * to[i];  // MISTAKE wave
  }
}

static double sum(const double* of) {
  double all = 0;
  for (int i = 0; i < cells; i++) all += of[i];
  return all;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  breach = argv[1];
  double* from = perdure_ipv_alloc(cells * sizeof *from);
  double* to = perdure_ipv_alloc(cells * sizeof *to);
  void* alive = NULL;
  uint64_t version = 0;
  for (int i = 0; i < cells; i++) from[i] = i % 7;
  to[0] = from[0];
  to[cells - 1] = from[cells - 1] + (is("walls", 0) ? 50 : 0);
  if (perdure_ipv_open(NULL, NULL) != 0) return 3;
  if (perdure_ipv_pair("rod", from, to, cells * sizeof *from) != 0) return 3;
  if (perdure_ipv_restart(&version) != 0) return 3;
  if (perdure_ipv_alive("rod", &alive) != 0 || alive != from) return 4;
  for (now = 1; now <= steps; now++) {
    is("wave", 8) ? step_of_waves(from, to) : step(from, to);
    double* const swapped = from;
    from = to;
    to = swapped;
    if (perdure_ipv_persist(&version) != 0) return 3;  // MISTAKE skip
    if (perdure_ipv_alive("rod", &alive) != 0 || alive != from) return 4;
  }
  printf("%d versions, sum %.12g\n", (int)version, sum(from));
  return perdure_ipv_close();
}
