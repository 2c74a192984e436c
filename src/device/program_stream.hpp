// SPDX-License-Identifier: BSD-3-Clause
//
// Program stream: a queue of work that the program has made for its GPU, as the driver knows it.
#pragma once

#include <cstdint>

namespace perdure {

// What the driver calls CUcontext, CUstream and the like.
using DriverHandle = void*;

// As enum perdure_stream_kind.
enum class DriverKind : std::uint8_t { cuda = 1, hip = 2 };

struct ProgramStream {
  DriverHandle handle = nullptr;  // null: the driver's default stream
  DriverKind kind = DriverKind::cuda;
};

}  // namespace perdure
