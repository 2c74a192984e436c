// SPDX-License-Identifier: BSD-3-Clause
//
// What PERDURE_TRACE asks for: FILE[,key=value…].
//
//   size=1M line=64 ways=1 mode=paper    the cache (CacheShape) and the FilterMode
//   page=4K floor=256                    of the trace: Header::page_bytes, floor_pages
//   region=all|marked                    everything, or what is inside of perdure_trace_begin/end
//   compute=TIME                         Ending::compute_ns: measured without recording
//   times=on|off                         off: no time of day and no duration, so that two runs give
//                                        the same bytes
//   aslr=off|keep                        off: the program is started again without randomised
//                                        addresses
//   helper=auto|on|off                   whether a thread of the recorder writes the trace; auto:
//                                        where the process may use more than one processor
//   buffer=4M                            what is recorded and the helper has not written, at most
//
// In FILE, %p becomes the number of the process and %r the rank. Pure. Failure:
// Code::invalid_argument, with what was seen and what is possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

enum class HelperUse { automatic, on, off };

struct RecorderOptions {
  std::string path;
  Header header;  // page, cache, mode, floor
  bool marked_only = false;
  bool times = true;
  bool keep_random_addresses = false;
  std::uint64_t compute_ns = 0;
  HelperUse helper = HelperUse::automatic;
  std::uint64_t buffer_bytes = std::uint64_t{4} << 20U;
};

Result<RecorderOptions> parse_recorder_options(const std::string& text);

}  // namespace perdure::trace
