// SPDX-License-Identifier: BSD-3-Clause
//
// Random bytes of the kernel, for what nobody may guess and what must not come twice.
//
// Threads: any. Failure: a Status where the kernel gives none; nothing weaker takes their place.
#pragma once

#include <cstddef>

#include "base/status.hpp"

namespace perdure {

Status fill_random(void* to, std::size_t bytes);

}  // namespace perdure
