// SPDX-License-Identifier: BSD-3-Clause
//
// What PERDURE_IPV_CHECK asks for: key=value, separated by commas.
//
//   mode=check|record   rules of the hooks, or what the loop carries; default: check
//   report=FILE         as JSON; %p becomes the number of the process, %r the rank; default: none
//   min=1K              record: heap blocks of at least so many bytes
//   show=20             check: so many violations are shown while the program runs
//
// Pure. Failure: Code::invalid_argument, with what was seen and what is possible.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace perdure::ipv_check {

struct Options {
  bool records = false;
  std::string report;
  std::uint64_t heap_bytes_min = 1024;
  unsigned show = 20;
};

Result<Options> parse_options(const std::string& text);

// `every` of the environment variable PERDURE_IPV, which the checker keeps to; its other keys
// change how the runtime copies, not what a program may do. 0: it is not in there.
Result<unsigned> parse_every(const std::string& text);

}  // namespace perdure::ipv_check
