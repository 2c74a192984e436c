// SPDX-License-Identifier: BSD-3-Clause
// What docs/cpp.md leaves out.
#include <perdure/perdure.hpp>

void run(perdure::Pool& pool);

void run(perdure::Pool& pool) {
  // snippet
}
