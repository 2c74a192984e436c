// SPDX-License-Identifier: BSD-3-Clause
//
// Part peers: the processes that use a part, as its pieces see them: this one's number, and a
// question to ask about another one that is in the way.
//
// A process may die while others go on using the part.
//   cache.P10 What one process has alone (a block that it fills, a claim, a journal entry, a grain
//       that it keeps, the base version, the lock, a shared pointer) is marked with its number
//       (part_owners.hpp), in the store that takes it. A process that is in the way of a mark,
//       joins, or leaves last asks the kernel whether the marked one can still store. If it cannot,
//       clean_up_after(), which holds its number, first gives up or undoes what was half done: the
//       block is absent and zeros, what the claim handed on is dirty again, the grain is kept anew,
//       because it has not changed. Then it does the intended writes, which were under way until
//       now, and so concurrent with all that others wrote. Each step may be done twice, so all of
//       it may be cut short and begun anew.
//   cache.P11 The last process that leaves cleans up what others left before the part is removed,
//       and hands over what they made dirty; or leaves all to recovery.
//
// Threads: any. Failure: join() when all numbers are in use; and of cleaning up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "cache/part_owners.hpp"
#include "parts/part_format.hpp"

namespace perdure {

class PartPeers {
 public:
  // `clean_up_after` does what a process with that number has left to be done.
  PartPeers(OwnerFormat* table, std::function<Status(std::uint32_t)> clean_up_after)
      : table_(table), clean_up_after_(std::move(clean_up_after)) {}

  // Takes a number, with an open file description of the part's file that is of no other use.
  // Without, this process is never taken for dead, nor takes others for it.
  Status join(FileHandle file) {
    auto owners = std::make_unique<PartOwners>(std::move(file), table_);
    PERDURE_TRY(owners->join());
    owners_ = std::move(owners);
    number_ = owners_->number();
    return Status::success();
  }
  void leave() {
    if (owners_ != nullptr) owners_->leave();
    number_ = owner_unknown;
  }
  bool has_joined() const { return owners_ != nullptr; }
  // owner_unknown: it has none.
  std::uint32_t number() const { return number_; }

  Status clean_up_if_dead(std::uint32_t number) {
    if (owners_ == nullptr || !owners_->take_over(number)) return Status::success();
    const Status clean = clean_up_after_(number);
    owners_->give_back(number, clean.ok());
    return clean;
  }
  // After all of them.
  Status clean_up_after_dead() {
    for (std::uint32_t number = 1; number <= owners_max; ++number) {
      PERDURE_TRY(clean_up_if_dead(number));
    }
    return Status::success();
  }
  bool any_left_behind() { return owners_ != nullptr && owners_->any_left_behind(); }

 private:
  OwnerFormat* table_;
  std::function<Status(std::uint32_t)> clean_up_after_;
  std::unique_ptr<PartOwners> owners_;
  std::uint32_t number_ = owner_unknown;
};

}  // namespace perdure
