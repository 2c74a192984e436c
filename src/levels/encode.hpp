// Encode: blocks of parity over GF(2^8), and lost data from what is left of a stripe. ISA-L's
// Cauchy matrix, whose square parts can all be inverted; for one block of parity it is all ones,
// which is XOR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perdure {

// One output block as a combination of `data` input blocks.
class Combination {
 public:
  // Row `row` of parity.
  static Combination of_parity(std::uint32_t data, std::uint32_t losses, std::uint32_t row);
  // Data block `wanted` from the elements of a stripe that are left, of which there are `data`:
  // below `data` a block of data, from there on a row of parity.
  static Combination of_left(std::uint32_t data, std::uint32_t losses,
                             std::span<const std::uint32_t> left, std::uint32_t wanted);

  // `inputs` are as many as data, all as long as `output`.
  void apply(std::span<const std::byte* const> inputs, std::span<std::byte> output) const;

 private:
  explicit Combination(std::span<const std::uint8_t> coefficients);
  std::uint32_t data_;
  bool copy_;  // a single block as it is
  std::vector<std::uint8_t> tables_;
};

}  // namespace perdure
