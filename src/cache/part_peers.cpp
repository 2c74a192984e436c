// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_peers.hpp"

#include <utility>

namespace perdure {

Status PartPeers::join(FileHandle file) {
  auto owners = std::make_unique<PartOwners>(std::move(file), table_);
  PERDURE_TRY(owners->join());
  owners_ = std::move(owners);
  number_ = owners_->number();
  return Status::success();
}

void PartPeers::leave() {
  if (owners_ != nullptr) owners_->leave();
  number_ = owner_unknown;
}

Status PartPeers::clean_up_if_dead(std::uint32_t number) {
  if (owners_ == nullptr || !owners_->take_over(number)) return Status::success();
  const Status clean = clean_up_after_(number);
  owners_->give_back(number, clean.ok());
  return clean;
}

Status PartPeers::clean_up_after_dead() {
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    PERDURE_TRY(clean_up_if_dead(number));
  }
  return Status::success();
}

}  // namespace perdure
