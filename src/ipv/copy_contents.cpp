// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/copy_contents.hpp"

namespace perdure {

void CopyContents::begin(std::uint32_t copies, std::uint64_t object_bytes) {
  lacking_.assign(copies, LineSet(object_bytes));
  distrust();
}

void CopyContents::restored(std::uint32_t copy) {
  holder_ = copy;
  lacking_[copy].clear();
}

void CopyContents::handed_over(std::uint32_t copy, const LineSet& changed) {
  holder_ = copy;
  for (std::uint32_t other = 0; other < lacking_.size(); ++other) {
    if (other != copy) lacking_[other].add(changed);
  }
  lacking_[copy].clear();
}

void CopyContents::distrust() {
  for (LineSet& lines : lacking_) lines.add_all();
}

}  // namespace perdure
