// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/version_check.hpp"

#include <algorithm>

namespace perdure {

void VersionCheck::take(const Objects& objects) {
  taken_.resize(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::byte* const now = objects[i]->contents();
    taken_[i].assign(now, now + objects[i]->bytes());
    objects[i]->take_plain_copy(taken_[i].data());
  }
}

Status VersionCheck::compare(const Objects& objects, const Device& device,
                             std::uint64_t version) const {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const VersionedArray& array = *objects[i]->array();
    const std::byte* const saved = device.base() + array.copy_offset(array.consistent_copy());
    const auto differs = std::ranges::mismatch(
        taken_[i], std::span(saved, static_cast<std::size_t>(objects[i]->bytes())));
    if (differs.in1 == taken_[i].end()) continue;
    return Status(Code::damaged, "verify: version ", version, " of object ",
                  quoted(objects[i]->name()), " differs at byte ", differs.in1 - taken_[i].begin(),
                  " from the program's memory at its persistence "
                  "point: ",
                  static_cast<unsigned>(*differs.in2), " was saved, not ",
                  static_cast<unsigned>(*differs.in1),
                  "; a store to it was not seen, or something stored to the committed copy");
  }
  return Status::success();
}

}  // namespace perdure
