#include "base/group.hpp"

#include <string>

namespace perdure {

Status Group::check_other(std::uint32_t rank) const {
  if (rank < ranks() && rank != this->rank()) return Status::success();
  return {Code::invalid_argument, "rank " + std::to_string(rank) +
                                      " is no other rank of a group of " + std::to_string(ranks()) +
                                      ", seen from rank " + std::to_string(this->rank())};
}

Result<std::unique_ptr<Group>> SoloGroup::split(std::uint32_t) {
  return std::unique_ptr<Group>(std::make_unique<SoloGroup>());
}

}  // namespace perdure
