// SPDX-License-Identifier: BSD-3-Clause
//
// A tracer for a test, to be preloaded: prints the markers of region.hpp.
#include <cinttypes>
#include <cstdio>

#include "npb/region.hpp"

[[gnu::visibility("default")]] void perdure_trace_begin(const char* /*name*/) {
  std::fprintf(stderr, "begin\n");
}
[[gnu::visibility("default")]] void perdure_trace_iteration(std::uint64_t iteration) {
  std::fprintf(stderr, "iteration %" PRIu64 "\n", iteration);
}
[[gnu::visibility("default")]] void perdure_trace_end() {
  std::fprintf(stderr, "end\n");
}
