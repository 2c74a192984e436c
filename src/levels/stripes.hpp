// Stripes: which bytes of which image go into which block of parity (redundancy.hpp). Pure.
//
// Element t of stripe s belongs to member s + t (mod g): below m it is row t of the parity, kept in
// block t of that member's guard; from m on it is segment t - m of that member's image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "pmem/region.hpp"

namespace perdure {

class Stripes {
 public:
  Stripes(std::uint32_t members, std::uint32_t losses, std::span<const std::uint64_t> image_bytes)
      : members_(members), losses_(losses) {
    const std::uint64_t longest = *std::max_element(image_bytes.begin(), image_bytes.end());
    segment_bytes_ = align_up((longest + data() - 1) / data(), 64);
  }

  std::uint32_t members() const { return members_; }
  std::uint32_t losses() const { return losses_; }
  std::uint32_t data() const { return members_ - losses_; }
  std::uint64_t segment_bytes() const { return segment_bytes_; }

  std::uint32_t member_of(std::uint32_t stripe, std::uint32_t element) const {
    return (stripe + element) % members_;
  }
  std::uint32_t element_of(std::uint32_t stripe, std::uint32_t member) const {
    return (member + members_ - stripe) % members_;
  }
  // Whose parity block `block` of a member's guard is.
  std::uint32_t stripe_of_block(std::uint32_t member, std::uint32_t block) const {
    return (member + members_ - block) % members_;
  }
  // Where a segment of a member's image goes.
  std::uint32_t stripe_of_segment(std::uint32_t member, std::uint32_t segment) const {
    return (member + 2 * members_ - losses_ - segment) % members_;
  }

 private:
  std::uint32_t members_;
  std::uint32_t losses_;
  std::uint64_t segment_bytes_ = 0;
};

// Bytes [offset, offset + count) of an image, zeros after its end: where they stand, or copied to
// `padded`.
inline std::span<const std::byte> padded_bytes(std::span<const std::byte> image,
                                               std::uint64_t offset, std::uint64_t count,
                                               std::vector<std::byte>& padded) {
  const std::uint64_t begin = std::min<std::uint64_t>(offset, image.size());
  const std::uint64_t there = std::min<std::uint64_t>(count, image.size() - begin);
  if (there == count) return image.subspan(begin, count);
  padded.assign(count, std::byte{0});
  std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(begin), there, padded.begin());
  return padded;
}

}  // namespace perdure
