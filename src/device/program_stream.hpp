// SPDX-License-Identifier: BSD-3-Clause
//
// Program stream: a queue of work that the program has made for its GPU, as the driver knows it.
#pragma once

namespace perdure {

// What the driver calls CUcontext, CUstream and the like.
using DriverHandle = void*;

struct ProgramStream {
  DriverHandle handle = nullptr;  // null: the driver's default stream
};

}  // namespace perdure
