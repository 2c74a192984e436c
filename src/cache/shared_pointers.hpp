// SPDX-License-Identifier: BSD-3-Clause
//
// Shared pointers: the shared file pointers of a cached file, one for each of its handles; of use
// on node 0. One that is taken is marked with the number of the process that took it (cache.P10 of
// part_peers.hpp), and is free again when that process has died: MPI ends the handle's other
// processes, too.
//
// Threads: any, in any process of the node. Failure: take(), when none is free.
#pragma once

#include <atomic>
#include <cstdint>

#include "parts/part_format.hpp"

namespace perdure {

class SharedPointers {
 public:
  explicit SharedPointers(PartStateFormat& state) : state_(state) {}

  // Its slot, for `owner`; it is 0. -1: none is free.
  int take(std::uint32_t owner) {
    for (int slot = 0; slot < static_cast<int>(shared_pointers_max); ++slot) {
      std::uint64_t nobody = 0;
      if (!word(state_.pointer_owners[slot]).compare_exchange_strong(nobody, owner)) continue;
      at(slot).store(0);
      return slot;
    }
    return -1;
  }
  void give(int slot) { word(state_.pointer_owners[slot]).store(0, std::memory_order_release); }
  void give_those_of(std::uint32_t owner) {
    for (std::uint64_t& taken_by : state_.pointer_owners) {
      std::uint64_t seen = owner;
      word(taken_by).compare_exchange_strong(seen, 0);
    }
  }
  std::atomic_ref<std::uint64_t> at(int slot) { return word(state_.pointers[slot]); }

 private:
  PartStateFormat& state_;
};

}  // namespace perdure
