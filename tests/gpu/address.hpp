// SPDX-License-Identifier: BSD-3-Clause
//
// What the driver's addresses, which are numbers, are to a processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

inline std::byte* at_address(std::uint64_t at) {
  return reinterpret_cast<std::byte*>(at);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace fake
