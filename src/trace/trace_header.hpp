// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a trace, read and checked.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

struct ReadHeader {
  Header header;
  std::uint64_t checksum = 0;
  std::uint64_t bytes = 0;  // of header and command
};

// Code::damaged for an empty, truncated or corrupt one, Code::foreign for another format, with the
// name of the importer that reads it, Code::newer_format.
Result<ReadHeader> read_header(ByteSource& source);

}  // namespace perdure::trace
