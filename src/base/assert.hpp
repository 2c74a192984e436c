// SPDX-License-Identifier: BSD-3-Clause
//
// Assertions for bugs of Perdure itself. Always on: a wrong pool costs more than a branch.
#pragma once

namespace perdure {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

#define PERDURE_ASSERT(expression)     \
  ((expression) ? static_cast<void>(0) \
                : ::perdure::assertion_failed(#expression, __FILE__, __LINE__))
