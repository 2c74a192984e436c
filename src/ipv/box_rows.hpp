// SPDX-License-Identifier: BSD-3-Clause
//
// Box rows: the rows of a box, in ascending order, as few as there can be. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmem/page_ranges.hpp"

namespace perdure {

constexpr unsigned box_dimensions_max = 4;

class BoxRows {
 public:
  // Counts and strides as perdure_ipv_box_begin() takes them; `first` is the box's first byte.
  BoxRows(std::uint64_t first, unsigned dimensions, const std::size_t* counts,
          const std::size_t* strides)
      : first_(first) {
    valid_ = dimensions >= 1 && dimensions <= box_dimensions_max && strides[0] == 1;
    for (unsigned d = 0; valid_ && d < dimensions; ++d) add_dimension(counts[d], strides[d]);
  }

  // False: rows would overlap, or the description is not valid.
  bool valid() const { return valid_; }
  bool empty() const { return row_bytes_ == 0; }
  ByteRange hull() const { return {first_, first_ + extent_}; }
  std::uint64_t total_bytes() const {
    std::uint64_t bytes = row_bytes_;
    for (unsigned d = 0; d < dimensions_; ++d) bytes *= counts_[d];
    return bytes;
  }

  // Rows with nothing in between are one.
  template <typename Each>
  void for_each(const Each& each) const {
    if (empty()) return;
    std::array<std::size_t, box_dimensions_max> at{};
    for (;;) {
      std::uint64_t begin = first_;
      for (unsigned d = 0; d < dimensions_; ++d) begin += at[d] * strides_[d];
      each(ByteRange{begin, begin + row_bytes_});
      unsigned d = 0;
      for (; d < dimensions_ && ++at[d] == counts_[d]; ++d) at[d] = 0;
      if (d == dimensions_) return;
    }
  }

 private:
  void add_dimension(std::size_t count, std::size_t stride) {
    if (count == 0) row_bytes_ = 0;
    if (count <= 1 || row_bytes_ == 0) return;
    std::uint64_t reach = 0;
    valid_ = stride >= extent_ && !__builtin_mul_overflow(count - 1, stride, &reach) &&
             reach < (std::uint64_t{1} << 62U);
    if (dimensions_ == 0 && stride == row_bytes_) {
      row_bytes_ *= count;
    } else {
      counts_[dimensions_] = count;
      strides_[dimensions_++] = stride;
    }
    extent_ += reach;
  }

  std::uint64_t first_;
  std::uint64_t row_bytes_ = 1;
  std::uint64_t extent_ = 1;
  unsigned dimensions_ = 0;
  std::array<std::size_t, box_dimensions_max> counts_{};
  std::array<std::size_t, box_dimensions_max> strides_{};
  bool valid_ = true;
};

}  // namespace perdure
