// SPDX-License-Identifier: BSD-3-Clause
#include "pool/participation.hpp"

namespace perdure {

void Participation::wake(VersionedArray& array) {
  if (!idle_) return;
  idle_ = false;
  if (woken_ != nullptr) woken_->emplace(number_, &array);
}

}  // namespace perdure
