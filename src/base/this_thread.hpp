// SPDX-License-Identifier: BSD-3-Clause
//
// The thread that calls: tells threads apart without a call.
#pragma once

#include <cstdint>

namespace perdure {

inline std::uintptr_t this_thread() {
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
}

// For a thread of ours, which is noted as one: the program's signals are its own threads'.
void leave_signals_to_others();

}  // namespace perdure
