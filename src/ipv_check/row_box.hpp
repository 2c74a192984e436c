// SPDX-License-Identifier: BSD-3-Clause
//
// RowBox: rows of an object at regular distances, as perdure_ipv_box_begin() names them. Offsets
// are those of the object. Pure.
#pragma once

#include <array>
#include <cstddef>

namespace perdure::ipv_check {

struct RowBox {
  static constexpr unsigned dimensions_max = 4;

  std::size_t first = 0;  // byte
  unsigned dimensions = 1;
  std::array<std::size_t, dimensions_max> counts{};   // innermost first: bytes of a row
  std::array<std::size_t, dimensions_max> strides{};  // bytes

  static RowBox of_row(std::size_t first, std::size_t bytes) {
    RowBox box;
    box.first = first;
    box.counts[0] = bytes;
    box.strides[0] = 1;
    return box;
  }

  friend bool operator==(const RowBox&, const RowBox&) = default;

  bool is_empty() const {
    for (unsigned d = 0; d < dimensions; ++d) {
      if (counts[d] == 0) return true;
    }
    return false;
  }

  // One past the last byte; the box is not empty.
  std::size_t end() const { return first + span(dimensions); }

  // [begin, end) lies in one row.
  bool contains(std::size_t begin, std::size_t end) const {
    return begin >= first && !is_empty() && within(dimensions - 1, begin - first, end - first);
  }

  // Calls use(begin, end) for each row, in ascending order where strides are nested.
  template <typename Use>
  void for_rows(Use use) const {
    if (!is_empty()) rows_of(dimensions - 1, first, use);
  }

 private:
  std::size_t span(unsigned of) const {
    std::size_t last = 0;
    for (unsigned d = 0; d < of; ++d) last += (counts[d] - 1) * strides[d];
    return last + 1;
  }

  bool within(unsigned d, std::size_t begin, std::size_t end) const {
    if (d == 0) return end <= counts[0];
    if (strides[d] == 0) return within(d - 1, begin, end);
    // Only places whose part of the box reaches as far.
    const std::size_t part = span(d);
    const std::size_t least = begin < part ? 0 : (begin - part) / strides[d] + 1;
    for (std::size_t i = least; i < counts[d] && i * strides[d] <= begin; ++i) {
      if (within(d - 1, begin - i * strides[d], end - i * strides[d])) return true;
    }
    return false;
  }

  template <typename Use>
  void rows_of(unsigned d, std::size_t at, Use& use) const {
    if (d == 0) {
      use(at, at + counts[0]);
      return;
    }
    for (std::size_t i = 0; i < counts[d]; ++i) rows_of(d - 1, at + i * strides[d], use);
  }
};

}  // namespace perdure::ipv_check
