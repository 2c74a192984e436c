// SPDX-License-Identifier: BSD-3-Clause
// What docs/ipv.md leaves out.
#include <perdure/perdure_ipv.h>
#include <stdint.h>
#include <stdlib.h>

struct particle {
  double x, v;
};
void run(perdure_pool* pool, long step, long steps);
void move_particles(struct particle** p, uint64_t* count);

void run(perdure_pool* pool, long step, long steps) {
  struct particle* p;
  uint64_t version, count;
  // snippet
}
