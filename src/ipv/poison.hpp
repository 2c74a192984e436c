// SPDX-License-Identifier: BSD-3-Clause
//
// Poison: words of memory that is to be overwritten, with a value that tells whether it was. Pure.
//
// The value is a quiet NaN, as a double and as two floats, so that arithmetic hands it on: with
// `everywhere`, what was computed from a word that was not overwritten before it was read is found
// as well. A program's own numbers are never this NaN; of other types a word has it by chance once
// in 2^64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace perdure {

class Poison {
 public:
  static constexpr std::uint64_t value = 0x7FFA'5E1D'7FFA'5E1D;
  static constexpr std::size_t word_bytes = 8;

  Poison(std::uint64_t bytes, bool everywhere) : words_(bytes / word_bytes), all_(everywhere) {}

  // Into `memory`, an older state, whose words must be overwritten where they differ from `now`:
  // all of them, or one in `stride` words, elsewhere each time.
  void lay(std::byte* memory, const std::byte* now, std::uint64_t stride) {
    laid_.clear();
    ++times_;
    std::uint64_t random = times_ * 0x9E37'79B9'7F4A'7C15;
    for (std::uint64_t first = 0; first < words_; first += all_ ? 1 : stride) {
      random ^= random << 13U;
      random ^= random >> 7U;
      random ^= random << 17U;
      const std::uint64_t word = all_ ? first : first + random % stride;
      if (word >= words_) break;
      if (std::memcmp(memory + word * word_bytes, now + word * word_bytes, word_bytes) == 0) {
        continue;
      }
      std::memcpy(memory + word * word_bytes, &value, word_bytes);
      laid_.push_back(word);
    }
  }

  // The first byte whose word still is poisoned; with `everywhere`, or was made from one.
  std::optional<std::uint64_t> found(const std::byte* memory) const {
    for (const std::uint64_t word : laid_) {
      if (is_at(memory, word)) return word * word_bytes;
    }
    if (!all_ || laid_.empty()) return std::nullopt;
    for (std::uint64_t word = 0; word < words_; ++word) {
      if (is_at(memory, word)) return word * word_bytes;
    }
    return std::nullopt;
  }
  std::size_t laid() const { return laid_.size(); }

 private:
  static bool is_at(const std::byte* memory, std::uint64_t word) {
    std::uint64_t found = 0;
    std::memcpy(&found, memory + word * word_bytes, word_bytes);
    return found == value;
  }

  std::uint64_t words_;
  bool all_;
  std::uint64_t times_ = 0;
  std::vector<std::uint64_t> laid_;
};

}  // namespace perdure
