// SPDX-License-Identifier: BSD-3-Clause
//
// Box rows: the rows of a box, in ascending order, as few as there can be. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "perdure/perdure_ipv_abi.h"
#include "pmem/page_ranges.hpp"

namespace perdure {

constexpr unsigned box_dimensions_max = 4;

class BoxRows {
 public:
  enum class Joins : std::uint8_t { no, yes };

  // As perdure_ipv_box_begin() takes it; `first` is the offset of its first byte. If `joins`, rows
  // with nothing in between are one.
  BoxRows(std::uint64_t first, const perdure_ipv_box& box, Joins joins = Joins::yes)
      : first_(first), joins_(joins) {
    valid_ = box.dimensions >= 1 && box.dimensions <= box_dimensions_max && box.strides[0] == 1;
    for (unsigned d = 0; valid_ && d < box.dimensions; ++d) {
      add_dimension(box.counts[d], box.strides[d], d == 0);
    }
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
  void add_dimension(std::size_t count, std::size_t stride, bool innermost) {
    if (count == 0) row_bytes_ = 0;
    if (count <= 1 || row_bytes_ == 0) return;
    std::uint64_t reach = 0;
    valid_ = stride >= extent_ && !__builtin_mul_overflow(count - 1, stride, &reach) &&
             reach < (std::uint64_t{1} << 62U);
    const bool join = innermost || joins_ == Joins::yes;
    if (join && dimensions_ == 0 && stride == row_bytes_) {
      row_bytes_ *= count;
    } else {
      counts_[dimensions_] = count;
      strides_[dimensions_++] = stride;
    }
    extent_ += reach;
  }

  std::uint64_t first_;
  Joins joins_;
  std::uint64_t row_bytes_ = 1;
  std::uint64_t extent_ = 1;
  unsigned dimensions_ = 0;
  std::array<std::size_t, box_dimensions_max> counts_{};
  std::array<std::size_t, box_dimensions_max> strides_{};
  bool valid_ = true;
};

}  // namespace perdure
