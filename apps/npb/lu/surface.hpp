// SPDX-License-Identifier: BSD-3-Clause
//
// The integral that LU is verified by beside the norms.
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::lu {

// Collective. The pressure over the six faces of the box of points 1 to n - 2 along x, 1 to n - 3
// along y and 2 to n - 2 along z, by the trapezoidal rule.
double surface_integral(const flow::Flow& flow);

}  // namespace npb::lu
