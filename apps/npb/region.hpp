// SPDX-License-Identifier: BSD-3-Clause
//
// Markers of the region of interest. A tracer that is linked or preloaded may define any of the
// three functions; where none does, a marker is a test of an address.
//
//   perdure_trace_begin      the timed region, called "iterations", begins: the problem is set up,
//                            nothing is solved; this and the end are those of perdure_trace.h
//   perdure_trace_iteration  an iteration of the main loop begins; they count from 1
//   perdure_trace_end        the timed region has ended
#pragma once

#include <cstdint>

extern "C" {
[[gnu::weak]] void perdure_trace_begin(const char* name);
[[gnu::weak]] void perdure_trace_iteration(std::uint64_t iteration);
[[gnu::weak]] void perdure_trace_end();
}

namespace npb {

inline void mark_begin() {
  if (perdure_trace_begin != nullptr) perdure_trace_begin("iterations");
}
inline void mark_iteration(std::uint64_t iteration) {
  if (perdure_trace_iteration != nullptr) perdure_trace_iteration(iteration);
}
inline void mark_end() {
  if (perdure_trace_end != nullptr) perdure_trace_end();
}

}  // namespace npb
