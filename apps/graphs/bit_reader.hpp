// SPDX-License-Identifier: BSD-3-Clause
//
// BitReader: bits and instantaneous codes of a WebGraph bit stream: the first bit is the highest of
// the first byte. Codes are those of Boldi and Vigna, "The WebGraph Framework II: Codes for the
// World-Wide Web" (DCC 2004): unary is zeros and a one; gamma, delta and zeta_k encode x + 1.
//
// Invariant: no byte outside of [bytes, bytes + count) is read, whatever is there. A stream
// that ends within a code, or a code of more than 63 bits, throws BitError.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace graphs {

enum class Code : std::uint8_t { unary, gamma, delta, zeta, nibble };

// The position in the file is the reader's; what() is the end of a sentence that begins with it.
class BitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class BitReader {
 public:
  // `first_bit` is where `bytes` begins in its file: positions are the file's.
  BitReader(const std::uint8_t* bytes, std::size_t count, std::uint64_t first_bit = 0)
      : bytes_(bytes), count_(count), end_(count * 8), first_bit_(first_bit) {}

  std::uint64_t position() const { return first_bit_ + at_; }
  void seek(std::uint64_t position) {
    at_ = 0;
    if (position < first_bit_) throw BitError("it lies before the part that was read");
    advance(position - first_bit_);
  }

  std::uint64_t bits(unsigned count) {
    if (count > window_bits) {
      const std::uint64_t high = bits(count - 32);
      return high << 32 | bits(32);
    }
    if (count == 0) return 0;
    const std::uint64_t value = window() >> (64 - count);
    advance(count);
    return value;
  }

  std::uint64_t unary() {
    std::uint64_t zeros = 0;
    while ((window() >> (64 - window_bits)) == 0) {
      advance(window_bits);
      zeros += window_bits;
    }
    const auto more = static_cast<unsigned>(std::countl_zero(window()));
    advance(more + 1);
    return zeros + more;
  }

  std::uint64_t gamma() { return one_and_bits(unary()) - 1; }
  std::uint64_t delta() { return one_and_bits(gamma()) - 1; }

  std::uint64_t zeta(unsigned k) {
    const std::uint64_t h = unary();
    if ((h + 1) * k > code_bits_max) throw BitError("a code has more than 63 bits");
    const std::uint64_t left = std::uint64_t{1} << (h * k);
    const std::uint64_t m = bits(static_cast<unsigned>(h * k + k - 1));
    return (m < left ? m + left : m << 1 | bits(1)) - 1;
  }

  // Groups of three bits; the bit before each group is one at the last.
  std::uint64_t nibble() {
    std::uint64_t value = 0;
    for (unsigned groups = 1;; ++groups) {
      const std::uint64_t group = bits(4);
      value = value << 3 | (group & 7);
      if (group >= 8) return value;
      if (groups * 3 >= code_bits_max) throw BitError("a code has more than 63 bits");
    }
  }

  std::uint64_t read(Code code, unsigned zeta_k) {
    switch (code) {
      case Code::unary:
        return unary();
      case Code::gamma:
        return gamma();
      case Code::delta:
        return delta();
      case Code::zeta:
        return zeta(zeta_k);
      case Code::nibble:
        break;
    }
    return nibble();
  }

 private:
  static constexpr unsigned window_bits = 57;  // that window() has whatever the position in a byte
  static constexpr unsigned code_bits_max = 63;

  // The next bits, from the highest; zeros after the end, which advance() does not go past.
  std::uint64_t window() const {
    const std::size_t byte = at_ / 8;
    std::uint64_t word = 0;
    if (byte + 8 <= count_) {
      for (std::size_t i = 0; i < 8; ++i) word = word << 8 | bytes_[byte + i];  // one load
    } else {
      for (std::size_t i = 0; i < 8; ++i) {
        word = word << 8 | (byte + i < count_ ? bytes_[byte + i] : 0U);
      }
    }
    return word << (at_ % 8);
  }

  void advance(std::uint64_t count) {
    if (count > end_ - at_) throw BitError("the stream ends within a code");
    at_ += count;
  }

  std::uint64_t one_and_bits(std::uint64_t count) {
    if (count >= code_bits_max) throw BitError("a code has more than 63 bits");
    return std::uint64_t{1} << count | bits(static_cast<unsigned>(count));
  }

  const std::uint8_t* bytes_;
  std::size_t count_;
  std::uint64_t end_;
  std::uint64_t first_bit_;
  std::uint64_t at_ = 0;
};

}  // namespace graphs
