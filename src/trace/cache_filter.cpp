// SPDX-License-Identifier: BSD-3-Clause
#include "trace/cache_filter.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace perdure::trace {
namespace {

constexpr std::uint32_t line_bytes_max = 65536;
constexpr std::uint32_t ways_max = 1024;
constexpr std::uint64_t cache_bytes_max = std::uint64_t{1} << 40U;

Status wrong(const std::string& what) {
  return Status(Code::invalid_argument, "cache: ", what);
}

}  // namespace

Status check_shape(const CacheShape& shape) {
  if (!std::has_single_bit(shape.line_bytes) || shape.line_bytes < 8 ||
      shape.line_bytes > line_bytes_max) {
    return wrong("a line of " + std::to_string(shape.line_bytes) +
                 " bytes; it must be a power of two from 8 to 65536");
  }
  if (shape.ways == 0 || shape.ways > ways_max) {
    return wrong(std::to_string(shape.ways) + " ways; it must have 1 to 1024");
  }
  const std::uint64_t way_bytes = std::uint64_t{shape.line_bytes} * shape.ways;
  if (shape.size_bytes > cache_bytes_max || shape.size_bytes % way_bytes != 0 ||
      !std::has_single_bit(shape.size_bytes / way_bytes)) {
    return wrong(std::to_string(shape.size_bytes) + " bytes with " + std::to_string(shape.ways) +
                 " ways of " + std::to_string(shape.line_bytes) +
                 "-byte lines; size / (ways · line) must be a power of two, and at least 1");
  }
  return Status::success();
}

CacheFilter::CacheFilter(const CacheShape& shape, FilterMode mode, Consumer consumer, void* context)
    : line_shift_(static_cast<std::uint32_t>(std::countr_zero(shape.line_bytes))),
      set_mask_(0),
      others_per_set_(0),
      mode_(mode),
      consumer_(consumer),
      context_(context) {
  if (mode != FilterMode::none) {
    set_mask_ = shape.size_bytes / (std::uint64_t{shape.line_bytes} * shape.ways) - 1;
    others_per_set_ = shape.ways - 1;
  }
  first_.assign(set_mask_ + 1, empty);
  dirty_.assign(mode == FilterMode::modern ? set_mask_ + 1 : 0, empty);
  read_entries_ = first_.data();
  write_entries_ = dirty_.empty() ? read_entries_ : dirty_.data();
  others_.assign((set_mask_ + 1) * others_per_set_, empty);
}

void CacheFilter::touch_more(std::uint64_t line, std::uint64_t last, bool is_write) {
  for (; line <= last; ++line) touch(line, is_write);
}

void CacheFilter::put_first(std::uint64_t set, std::uint64_t address, bool is_dirty) {
  first_[set] = address;
  if (!dirty_.empty()) dirty_[set] = is_dirty ? address : empty;
}

void CacheFilter::miss_first(std::uint64_t line, bool is_write) {
  const std::uint64_t address = line << line_shift_;
  if (mode_ == FilterMode::none) {  // first_ stays empty: every access comes here
    ++misses_;
    report(address, is_write);
    return;
  }
  const std::uint64_t set = line & set_mask_;
  if (first_[set] == address) {  // a clean line is written
    put_first(set, address, true);
    return;
  }
  const bool is_dirty = !dirty_.empty() && dirty_[set] == first_[set];
  std::uint64_t carried = first_[set] | (is_dirty ? 1U : 0U);
  const auto begin = others_.begin() + static_cast<std::ptrdiff_t>(set * others_per_set_);
  for (auto other = begin; other != begin + others_per_set_; ++other) {
    std::swap(carried, *other);  // each moves back by one place, up to the one that was found
    if ((carried & ~std::uint64_t{1}) == address) {
      put_first(set, address, is_write || (carried & 1U) != 0);
      return;
    }
  }
  ++misses_;
  put_first(set, address, is_write);
  report(address, mode_ == FilterMode::paper && is_write);
  if (mode_ == FilterMode::modern && carried != empty && (carried & 1U) != 0) {
    report(carried & ~std::uint64_t{1}, true);
  }
}

void CacheFilter::write_back() {
  for (std::uint64_t& entry : dirty_) {
    if (entry != empty) report(std::exchange(entry, empty), true);
  }
  if (mode_ != FilterMode::modern) return;
  for (std::uint64_t& entry : others_) {
    if (entry == empty || (entry & 1U) == 0) continue;
    entry &= ~std::uint64_t{1};
    report(entry, true);
  }
}

}  // namespace perdure::trace
