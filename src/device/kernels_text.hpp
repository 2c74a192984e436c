// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels, as the text of kernels.ptx, which the build puts into the library.
#pragma once

namespace perdure {

// Ends with a zero byte; empty where they were left out.
const char* kernels_text();

}  // namespace perdure
