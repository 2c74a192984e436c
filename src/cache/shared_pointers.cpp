// SPDX-License-Identifier: BSD-3-Clause
#include "cache/shared_pointers.hpp"

namespace perdure {

int SharedPointers::take(std::uint32_t owner) {
  for (int slot = 0; slot < static_cast<int>(shared_pointers_max); ++slot) {
    std::uint64_t nobody = 0;
    if (!word(state_.pointer_owners[slot]).compare_exchange_strong(nobody, owner)) continue;
    at(slot).store(0);
    return slot;
  }
  return -1;
}

void SharedPointers::give_those_of(std::uint32_t owner) {
  for (std::uint64_t& taken_by : state_.pointer_owners) {
    std::uint64_t seen = owner;
    word(taken_by).compare_exchange_strong(seen, 0);
  }
}

}  // namespace perdure
