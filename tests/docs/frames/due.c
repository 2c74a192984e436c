// SPDX-License-Identifier: BSD-3-Clause
// What docs/cluster.md leaves out.
#include <perdure/perdure.h>

void run(perdure_pool* pool);
void compute(void);
void check(int code);

static int finished;

void run(perdure_pool* pool) {
  // snippet
}
