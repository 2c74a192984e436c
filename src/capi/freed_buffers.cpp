// SPDX-License-Identifier: BSD-3-Clause
#include "freed_buffers.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/fork_guard.hpp"
#include "freed_objects.hpp"

namespace perdure {

std::atomic<std::uintptr_t> FreedBuffers::low{0};
std::atomic<std::uintptr_t> FreedBuffers::high{0};

namespace {

std::shared_mutex mutex;  // of what is below
// By their first byte, disjoint; and those that overlap one of these: a buffer of two arrays. They
// outlive the process's last call of free().
auto& buffers = *new std::map<std::uintptr_t, VersionedArray*>;
auto& overlapping = *new std::vector<VersionedArray*>;

// Null: there is none that a call on the host could free.
const std::byte* buffer_of(const VersionedArray& array) {
  return array.is_by_functions() ? nullptr : array.given_buffer();
}

std::uintptr_t first_of(const VersionedArray& array) {
  return reinterpret_cast<std::uintptr_t>(buffer_of(array));
}

bool reaches(const VersionedArray& array, std::uintptr_t begin, std::uintptr_t end) {
  return first_of(array) < end && first_of(array) + array.size_bytes() > begin;
}

// Under the lock.
template <typename Each>
void for_each_within(std::uintptr_t begin, std::uintptr_t end, const Each& each) {
  auto at = buffers.upper_bound(begin);
  if (at != buffers.begin() && reaches(*std::prev(at)->second, begin, end)) --at;
  for (; at != buffers.end() && at->first < end; ++at) each(*at->second);
  for (VersionedArray* const array : overlapping) {
    if (reaches(*array, begin, end)) each(*array);
  }
}

template <typename Each>
void tell(std::uintptr_t begin, std::uintptr_t end, const Each& each) {
  const std::shared_lock<std::shared_mutex> lock(mutex);
  for_each_within(begin, end, each);
}

}  // namespace

void FreedBuffers::watch(VersionedArray& array) {
  if (buffer_of(array) == nullptr || array.size_bytes() == 0) return;
  in_forked_children([] { low = high = 0; });
  {
    const std::lock_guard<std::shared_mutex> lock(mutex);
    const std::uintptr_t begin = first_of(array);
    const std::uintptr_t end = begin + array.size_bytes();
    bool alone = true;
    for_each_within(begin, end, [&alone](const VersionedArray&) { alone = false; });
    if (alone) {
      buffers.emplace(begin, &array);
    } else {
      overlapping.push_back(&array);
    }
    const bool first = high == 0;
    low = first ? begin : std::min(low.load(), begin);
    high = std::max(high.load(), end);
  }
  lead_freeing_calls(FreedMemory::buffers);
}

// Nothing is freed while the lock is held: that would lead here. Whether none is left.
bool FreedBuffers::take_out(VersionedArray& array) {
  if (buffer_of(array) == nullptr || array.size_bytes() == 0) return false;
  std::map<std::uintptr_t, VersionedArray*>::node_type gone;
  const std::lock_guard<std::shared_mutex> lock(mutex);
  const auto at = buffers.find(first_of(array));
  if (at != buffers.end() && at->second == &array) gone = buffers.extract(at);
  std::erase(overlapping, &array);
  const bool last = buffers.empty() && overlapping.empty();
  if (last) low = high = 0;
  return last;
}

void FreedBuffers::forget(VersionedArray& array) {
  if (take_out(array)) stop_leading_freeing_calls(FreedMemory::buffers);
}

Status FreedBuffers::change(VersionedArray& array, const std::function<Status()>& resize) {
  const bool last = take_out(array);
  const Status status = resize();
  watch(array);
  const bool watched = buffer_of(array) != nullptr && array.size_bytes() != 0;
  if (last && !watched) stop_leading_freeing_calls(FreedMemory::buffers);
  return status;
}

void FreedBuffers::go(std::uintptr_t begin, std::uintptr_t end, const char* how) {
  tell(begin, end, [how](VersionedArray& array) { array.lose_buffer(how); });
}

void FreedBuffers::begin_move(std::uintptr_t begin, std::uintptr_t end) {
  tell(begin, end, [](VersionedArray& array) { array.move_buffer(); });
}

void FreedBuffers::end_move(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t kept_end) {
  tell(begin, end, [begin, kept_end](VersionedArray& array) {
    const bool kept = first_of(array) >= begin && first_of(array) + array.size_bytes() <= kept_end;
    array.end_move_of_buffer(kept);
  });
}

}  // namespace perdure
