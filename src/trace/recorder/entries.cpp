// SPDX-License-Identifier: BSD-3-Clause
//
// What instrumented code calls (perdure_trace_abi.h). On x86-64 the four that it calls most are in
// entries_x86_64.S, which saves the registers and comes here.
#include "trace/recorder/process.hpp"

using perdure::trace::record_access;

namespace {

void record_lanes(std::uint64_t address, std::uint64_t element_bytes, std::uint64_t lanes,
                  bool is_write) {
  for (; lanes != 0; lanes >>= 1U, address += element_bytes) {
    if ((lanes & 1U) != 0) record_access(address, element_bytes, is_write);
  }
}

}  // namespace

extern "C" {

#if defined(__x86_64__)
#define PERDURE_TRACE_ENTRY(name) __attribute__((visibility("hidden"))) void name##_access
#else
#define PERDURE_TRACE_ENTRY(name) PERDURE_API void name
#endif

PERDURE_TRACE_ENTRY(perdure_trace_read)(std::uint64_t address, std::uint64_t bytes) {
  record_access(address, bytes, false);
}

PERDURE_TRACE_ENTRY(perdure_trace_write)(std::uint64_t address, std::uint64_t bytes) {
  record_access(address, bytes, true);
}

// The filter finds the entry again.
PERDURE_TRACE_ENTRY(perdure_trace_read_miss)(std::uint64_t* /*entry*/, std::uint64_t address) {
  record_access(address, 1, false);
}

PERDURE_TRACE_ENTRY(perdure_trace_write_miss)(std::uint64_t* /*entry*/, std::uint64_t address) {
  record_access(address, 1, true);
}

PERDURE_API void perdure_trace_read_lanes(std::uint64_t address, std::uint64_t element_bytes,
                                          std::uint64_t lanes) {
  record_lanes(address, element_bytes, lanes, false);
}

PERDURE_API void perdure_trace_write_lanes(std::uint64_t address, std::uint64_t element_bytes,
                                           std::uint64_t lanes) {
  record_lanes(address, element_bytes, lanes, true);
}

PERDURE_API void perdure_trace_copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  constexpr std::uint64_t step = std::uint64_t{1} << PERDURE_TRACE_LINE_SHIFT;
  for (std::uint64_t at = 0; at < bytes; at += step) {
    const std::uint64_t count = bytes - at < step ? bytes - at : step;
    record_access(from + at, count, false);
    record_access(to + at, count, true);
  }
}

}  // extern "C"
