// SPDX-License-Identifier: BSD-3-Clause
//
// HIP driver: AMD's calls in the table of those of CUDA, from ROCm 6 on. Nothing of HIP is needed
// to build.
//
// Most of them are the same by other names. What is not:
//   - HIP has devices in place of contexts, and a current one of each thread. A context here is the
//     number of a device, and who takes it gives the thread its own device back.
//   - A call that fails leaves its error for hipGetLastError(), where the program would find it.
//     Questions about memory that is the host's fail, and leave nothing.
//   - It takes no text of ours, so the processor computes the checksums.
//
// Threads: any.
#pragma once

#include "device/cuda_driver.hpp"

namespace perdure {

void look_up_hip(void* library, CudaDriver& to);

}  // namespace perdure
