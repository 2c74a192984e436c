// SPDX-License-Identifier: BSD-3-Clause
// What docs/ipv.md leaves out.
#include <perdure/perdure.h>

#include <stddef.h>
#include <stdint.h>
// first line of the snippet

void run(size_t cells, long steps);
void heat_step(double* u, size_t cells);

void run(size_t cells, long steps) {
  double* u;
  perdure_pool* pool;
  long step = 0;
  uint64_t version;
  // snippet
}
