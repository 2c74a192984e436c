// SPDX-License-Identifier: BSD-3-Clause
// What docs/ipv.md leaves out.
#include <perdure/perdure_ipv.h>
#include <stddef.h>
#include <stdint.h>

void run(size_t bytes, long step, long steps);
void stream_and_collide(const double* from, double* to);

#define swap(one, other) \
  do {                   \
    double* kept = one;  \
    one = other;         \
    other = kept;        \
  } while (0)

void run(size_t bytes, long step, long steps) {
  double *f, *g, *from, *to;
  uint64_t version;
  // snippet
}
