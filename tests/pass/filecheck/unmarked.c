// SPDX-License-Identifier: BSD-3-Clause
//
// Modules that mark nothing come out byte for byte the same.
// RUN: for o in -O0 -O1 -O2 "-O3 -g"; do \
// RUN:   %plain-clang $o %s > %t.1 && PERDURE_PASS=ipv %clang $o %s > %t.2 && \
// RUN:   cmp %t.1 %t.2 || exit 1; done
// RUN: clang-19 -O2 -c %s -o %t.3 && PERDURE_PASS=ipv %objclang -O2 -c %s -o %t.4 && \
// RUN:   cmp %t.3 %t.4
void scale(double* u, long n) {
  for (long i = 0; i < n; ++i) u[i] *= 0.5;
}
double sum(const double* u, long n) {
  double total = 0;
  for (long i = 0; i < n; ++i) total += u[i];
  return total;
}
