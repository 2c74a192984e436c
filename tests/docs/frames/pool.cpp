// SPDX-License-Identifier: BSD-3-Clause
// What docs/cpp.md leaves out.
#include <perdure/perdure.hpp>

void run(std::size_t rows, std::size_t columns, std::int64_t iteration);

void run(std::size_t rows, std::size_t columns, std::int64_t iteration) {
  // snippet
  u.working()[0] = 1;
}
