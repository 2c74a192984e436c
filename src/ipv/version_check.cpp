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

Status VersionCheck::compare(const Objects& objects, const ArrayTable& arrays, const Device& device,
                             std::uint64_t version) const {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string& name = objects[i]->name();
    const auto entry = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const ArrayEntry& of) { return of.name == name; });
    const std::size_t bytes = entry == arrays.end() ? 0 : (*entry).size_bytes;
    if (bytes != taken_[i].size()) {
      return Status(Code::damaged, "verify: version ", version, " of object ", quoted(name),
                    " has ", bytes, " bytes, and the program's memory had ", taken_[i].size());
    }
    if (bytes == 0) continue;
    const std::byte* const saved = device.base() + (*entry).copy_offset((*entry).copy);
    const auto differs = std::ranges::mismatch(taken_[i], std::span(saved, bytes));
    if (differs.in1 == taken_[i].end()) continue;
    return Status(Code::damaged, "verify: version ", version, " of object ", quoted(name),
                  " differs at byte ", differs.in1 - taken_[i].begin(),
                  " from the program's memory at its persistence "
                  "point: ",
                  static_cast<unsigned>(*differs.in2), " was saved, not ",
                  static_cast<unsigned>(*differs.in1),
                  "; a store to it was not seen, or something stored to the committed copy");
  }
  return Status::success();
}

}  // namespace perdure
