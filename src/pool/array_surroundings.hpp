// SPDX-License-Identifier: BSD-3-Clause
//
// Array surroundings: what all arrays of a pool have around them, which outlives them.
#pragma once

#include <cstdint>

#include "pmem/device.hpp"
#include "pmem/parallel.hpp"

namespace perdure {

class Accelerators;  // device/accelerators.hpp

struct ArraySurroundings {
  Device& device;
  ParallelWriter& writer;
  Accelerators* accelerators;  // null: buffers are the host's
  std::uint64_t block_bytes;
};

}  // namespace perdure
