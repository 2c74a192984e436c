// SPDX-License-Identifier: BSD-3-Clause
//
// Stripes: how the images of a failure group of g members are cut, who keeps which block of parity,
// and where in a guard it is (redundancy.hpp has the idea).
//
// With m rows, blocks of parity, a stripe has k = g - m columns, segments of data. Of stripe s,
// member s + r (mod g) keeps row r, and column c is segment k - 1 - c of member s + m + c (mod g).
// So each member has a segment in k stripes, and keeps a row of the m others.
//
// A round is a chunk of all segments. A guard holds, for each round, row r of its m rows at r times
// the round's length.
//
// Threads: a value. Failure: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "levels/sealed_format.hpp"
#include "pmem/region.hpp"

namespace perdure {

class Stripes {
 public:
  Stripes(std::uint32_t rows, std::span<const std::uint64_t> image_bytes)
      : members_(static_cast<std::uint32_t>(image_bytes.size())),
        rows_(rows),
        image_bytes_(image_bytes.begin(), image_bytes.end()) {
    std::uint64_t longest = 0;
    for (const std::uint64_t bytes : image_bytes_) longest = std::max(longest, bytes);
    segment_bytes_ = align_up((longest + columns() - 1) / columns(), 64);
  }

  std::uint32_t members() const { return members_; }
  std::uint32_t rows() const { return rows_; }
  std::uint32_t columns() const { return members_ - rows_; }
  std::uint64_t segment_bytes() const { return segment_bytes_; }
  std::uint64_t image_bytes(std::uint32_t member) const { return image_bytes_[member]; }
  std::uint64_t rounds() const {
    return (segment_bytes_ + sealed_chunk_bytes - 1) / sealed_chunk_bytes;
  }
  std::uint64_t round_bytes(std::uint64_t round) const {
    return std::min(sealed_chunk_bytes, segment_bytes_ - round * sealed_chunk_bytes);
  }
  std::uint64_t parity_bytes() const { return rows() * segment_bytes_; }

  std::uint32_t row_keeper(std::uint32_t stripe, std::uint32_t row) const {
    return (stripe + row) % members_;
  }
  std::uint32_t column_owner(std::uint32_t stripe, std::uint32_t column) const {
    return (stripe + rows_ + column) % members_;
  }
  // The stripe of which the member keeps that row.
  std::uint32_t stripe_of_row(std::uint32_t member, std::uint32_t row) const {
    return (member + members_ - row) % members_;
  }
  // The stripe in which the member has that column.
  std::uint32_t stripe_of_column(std::uint32_t member, std::uint32_t column) const {
    return (member + 2 * members_ - rows_ - column) % members_;
  }

  // In its owner's image, where byte `at` of a segment is.
  std::uint64_t in_image(std::uint32_t column, std::uint64_t at) const {
    return (columns() - 1 - column) * segment_bytes_ + at;
  }
  // How many of `count` bytes from there on the image has; the others are padding, zeros.
  std::uint64_t bytes_there(std::uint32_t member, std::uint64_t offset, std::uint64_t count) const {
    const std::uint64_t length = image_bytes_[member];
    return offset >= length ? 0 : std::min(count, length - offset);
  }
  // In its keeper's guard, where byte `at` of a row is.
  std::uint64_t in_guard(std::uint32_t row, std::uint64_t at) const {
    const std::uint64_t round = at / sealed_chunk_bytes;
    return (round * rows()) * sealed_chunk_bytes + row * round_bytes(round) +
           at % sealed_chunk_bytes;
  }

 private:
  std::uint32_t members_;
  std::uint32_t rows_;
  std::vector<std::uint64_t> image_bytes_;
  std::uint64_t segment_bytes_ = 0;
};

}  // namespace perdure
