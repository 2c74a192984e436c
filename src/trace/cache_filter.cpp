#include "trace/cache_filter.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace perdure::trace {
namespace {

constexpr std::uint32_t line_bytes_max = 65536;
constexpr std::uint32_t ways_max = 1024;
constexpr std::uint64_t cache_bytes_max = std::uint64_t{1} << 40U;

Status wrong(const std::string& what) {
  return {Code::invalid_argument, "cache: " + what};
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
  others_.assign((set_mask_ + 1) * others_per_set_, empty);
}

void CacheFilter::touch_more(std::uint64_t line, std::uint64_t last, bool is_write) {
  for (; line <= last; ++line) touch(line, is_write);
}

void CacheFilter::report(std::uint64_t line, bool is_write) {
  consumer_(context_, line << line_shift_, is_write);
}

void CacheFilter::miss_first(std::uint64_t line, bool is_write) {
  const std::uint64_t dirty = is_write ? 1 : 0;
  if (mode_ == FilterMode::none) {  // first_ stays empty: every access comes here
    ++misses_;
    report(line, is_write);
    return;
  }
  const std::uint64_t set = line & set_mask_;
  std::uint64_t carried = first_[set];
  const auto begin = others_.begin() + static_cast<std::ptrdiff_t>(set * others_per_set_);
  for (auto other = begin; other != begin + others_per_set_; ++other) {
    std::swap(carried, *other);  // each moves back by one place, up to the one that was found
    if ((carried >> 1U) == line) {
      first_[set] = carried | dirty;
      return;
    }
  }
  ++misses_;
  first_[set] = line << 1U | dirty;
  report(line, mode_ == FilterMode::paper && is_write);
  if (mode_ == FilterMode::modern && carried != empty && (carried & 1U) != 0) {
    report(carried >> 1U, true);
  }
}

void CacheFilter::write_back() {
  for (auto* entries : {&first_, &others_}) {
    for (std::uint64_t& entry : *entries) {
      if (mode_ == FilterMode::modern && entry != empty && (entry & 1U) != 0) {
        report(entry >> 1U, true);
        entry &= ~std::uint64_t{1};
      }
    }
  }
}

}  // namespace perdure::trace
