// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/object_list.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "pool/fault_handler.hpp"

namespace perdure {
namespace {

// The objects that faults may concern, as the fault handler reads them.
std::array<std::atomic<InPlaceObject*>, ObjectList::objects_max> published{};
std::atomic<std::size_t> published_count{0};

// A fault claimant.
bool let_store(std::uintptr_t address) {
  const std::size_t count = published_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    InPlaceObject* object = published[i].load(std::memory_order_relaxed);
    if (object->shows(address) && object->fault(address)) return true;
  }
  return false;
}

}  // namespace

ObjectList::ObjectList() {
  claim_faults(let_store);
}

void ObjectList::replace(std::size_t place, std::unique_ptr<InPlaceObject> object) {
  published[place] = object.get();
  replaced_.reserve(replaced_.size() + 1);
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  replaced_.push_back(std::exchange(objects_[place], std::move(object)));
}

std::size_t ObjectList::place_of(const InPlaceObject& object) const {
  const auto found =
      std::ranges::find_if(objects_, [&](const auto& each) { return each.get() == &object; });
  return static_cast<std::size_t>(found - objects_.begin());
}

void ObjectList::publish() {
  for (std::size_t i = 0; i < objects_.size(); ++i) published[i] = objects_[i].get();
  published_count = objects_.size();
  find_bounds();
}

void ObjectList::withdraw() {
  published_count = 0;
  bounds_ = {};
}

void ObjectList::clear() {
  objects_.clear();
  replaced_.clear();
}

void ObjectList::find_bounds() {
  Bounds all{~std::uintptr_t{0}, 0};
  for (const auto& object : objects_) {
    if (object->bytes() == 0) continue;
    for (const std::uintptr_t first : object->beginnings()) {
      all.low = std::min(all.low, first);
      all.high = std::max<std::uintptr_t>(all.high, first + object->bytes());
    }
  }
  bounds_ = all.high == 0 ? Bounds() : all;
}

InPlaceObject* ObjectList::find(std::uintptr_t address) const {
  return address < bounds_.low || address >= bounds_.high ? nullptr : holding(address);
}

InPlaceObject* ObjectList::holding(std::uintptr_t address) const {
  const auto found = std::ranges::find_if(
      objects_, [address](const auto& object) { return object->holds(address); });
  return found == objects_.end() ? nullptr : found->get();
}

InPlaceObject* ObjectList::named(const std::string& name) const {
  const auto found = std::ranges::find_if(
      objects_, [&name](const auto& object) { return object->name() == name; });
  return found == objects_.end() ? nullptr : found->get();
}

Status ObjectList::end_within(std::uintptr_t begin, std::uintptr_t end, Going how) {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  for (const auto& object : objects_) {
    if (object->reaches_into(begin, end)) PERDURE_TRY(object->end(how));
  }
  return Status::success();
}

bool ObjectList::reaches_into(std::uintptr_t begin, std::uintptr_t end) const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  return std::ranges::any_of(objects_,
                             [&](const auto& object) { return object->reaches_into(begin, end); });
}

}  // namespace perdure
