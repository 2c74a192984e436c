// SPDX-License-Identifier: BSD-3-Clause
// What docs/cpp.md leaves out.
#include <vector>

#include <perdure/ipv.hpp>

struct particle {
  double x, v;
};
void run(perdure::Pool& pool, long iteration, long iterations);
void move_particles(std::vector<particle>& p);

void run(perdure::Pool& pool, long iteration, long iterations) {
  // snippet
}
