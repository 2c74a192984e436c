// SPDX-License-Identifier: BSD-3-Clause
//
// a = b + 3 c over arrays of N lines, REPEATS times: triad N REPEATS. It writes 3 N + N REPEATS
// lines and reads 2 N REPEATS + 2, where an array does not fit the cache: the last two are that of
// its arguments and that of the element which is printed.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** words) {
  const size_t n = (size_t)(count > 1 ? atol(words[1]) : 32768) * 8;
  const int repeats = count > 2 ? atoi(words[2]) : 3;
  double* a = aligned_alloc(4096, n * sizeof *a);
  double* b = aligned_alloc(4096, n * sizeof *b);
  double* c = aligned_alloc(4096, n * sizeof *c);
  for (size_t i = 0; i < n; ++i) {
    a[i] = 0;
    b[i] = (double)i;
    c[i] = 2 * (double)i;
  }
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
  }
  printf("%g\n", a[n / 2]);
  return 0;
}
