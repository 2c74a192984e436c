// SPDX-License-Identifier: BSD-3-Clause
// What docs/cpp.md leaves out.
#include <perdure/ipv.hpp>
#include <perdure/perdure.hpp>
#include <vector>

void run(perdure::Pool& pool, std::size_t cells, int iteration, int iterations);
void heat_step(std::vector<double, perdure::ipv::allocator<double>>& u);

void run(perdure::Pool& pool, std::size_t cells, int iteration, int iterations) {
  // snippet
}
