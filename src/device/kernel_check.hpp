// SPDX-License-Identifier: BSD-3-Clause
//
// Kernel check: whether the kernels, as this driver has translated them for this device, compute
// and store what they are meant to. What they say of a version nobody else looks at before a
// restart.
//
// Threads: one at a time. Failure: as Accelerator says.
#pragma once

#include "device/accelerator.hpp"

namespace perdure {

// With some 260 KiB of the accelerator's memory.
Result<bool> kernels_are_right(Accelerator& accelerator);

}  // namespace perdure
