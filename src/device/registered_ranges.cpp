// SPDX-License-Identifier: BSD-3-Clause
#include "device/registered_ranges.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace perdure {
namespace {

std::uint64_t system_page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

bool RegisteredRanges::add(Accelerator& accelerator, std::byte* begin, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t page = system_page_bytes();
  const DeviceAddress end = (address_of(begin) + bytes + page - 1) / page * page;
  for (DeviceAddress at = address_of(begin) / page * page; at < end;) {
    const auto next = ranges_.upper_bound(at);
    if (next != ranges_.begin() && std::prev(next)->second.end > at) {
      at = std::prev(next)->second.end;
      continue;
    }
    const DeviceAddress stop = next == ranges_.end() ? end : std::min(end, next->first);
    std::byte* const first = begin + static_cast<std::int64_t>(at - address_of(begin));
    if (!accelerator.register_host(first, stop - at).ok()) return false;
    ranges_[at] = {stop, first, &accelerator};
    at = stop;
  }
  return true;
}

void RegisteredRanges::give_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [address, range] : ranges_) range.by->unregister_host(range.begin);
  ranges_.clear();
}

std::size_t RegisteredRanges::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ranges_.size();
}

std::vector<DeviceAddress> RegisteredRanges::ends_of_pieces(DeviceAddress begin,
                                                            DeviceAddress end) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<DeviceAddress> ends;
  for (DeviceAddress at = begin; at < end; at = ends.back()) {
    const auto range = ranges_.upper_bound(at);
    const DeviceAddress until = range == ranges_.begin() ? end : std::prev(range)->second.end;
    ends.push_back(std::min(end, until > at ? until : end));
  }
  return ends;
}

}  // namespace perdure
