// SPDX-License-Identifier: BSD-3-Clause
//
// Emits the calls of perdure_ipv_abi.h around each nest, and, for each row loop of one, the
// versions of it whose loads have the differences added (ipv_version.hpp).
//
// In front of a nest two comparisons and its size say whether the runtime is asked at all.
#pragma once

#include "ipv_box.hpp"

namespace perdure::ipv {

// Transforms the function; analyses are stale after it.
void emit_hooks(Analyses& analyses, const std::vector<Box>& boxes);

}  // namespace perdure::ipv
