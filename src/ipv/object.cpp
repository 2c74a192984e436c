// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/object.hpp"

#include <utility>

namespace perdure {

void ObjectSurroundings::hold(bool on) noexcept {
  held.store(on ? 1 : 0, std::memory_order_release);
  held.notify_all();
}

void ObjectSurroundings::wait_while_held() const noexcept {
  while (held.load(std::memory_order_acquire) != 0) held.wait(1);
}

InPlaceObject::InPlaceObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                             std::uint64_t bytes, Tier asked)
    : surroundings_(surroundings),
      name_(std::move(name)),
      address_(address),
      bytes_(bytes),
      asked_(asked) {}

bool InPlaceObject::reaches_into(std::uintptr_t begin, std::uintptr_t end) const {
  for (;;) {
    const std::uint32_t place = place_number_;
    if (place % 2 != 0) return false;
    const bool reaches = !ended_ && overlaps(begin, end);
    if (place_number_ == place) return reaches;
  }
}

void InPlaceObject::refuse_box(std::string onlooker) {
  counts_.boxes_refused.add(1);
  onlooker_ = std::move(onlooker);
}

perdure_ipv_object_status InPlaceObject::status() const {
  perdure_ipv_object_status status{};
  status.tier = tier();
  status.versions = counts_.versions.get();
  status.rows = counts_.rows.get();
  status.fresh_row_bytes = counts_.fresh_row_bytes.get();
  status.copied_bytes = counts_.copied_bytes.get();
  status.flushed_bytes = counts_.flushed_bytes.get();
  status.streamed_bytes = counts_.streamed_bytes.get();
  status.swaps = counts_.swaps.get();
  status.swap_ns = counts_.swap_ns.get();
  status.guard_faults = counts_.guard_faults.get();
  status.persist_ns = counts_.waited_ns.get() + counts_.first_stores_ns.get();
  if (array_ != nullptr) status.pool_bytes = array_->copies() * array_->entry().stride_bytes;
  return status;
}

}  // namespace perdure
