// SPDX-License-Identifier: BSD-3-Clause
//
// Tells threads apart without a call.
#pragma once

#include <cstdint>

namespace perdure {

inline std::uintptr_t this_thread() {
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
}

}  // namespace perdure
