// SPDX-License-Identifier: BSD-3-Clause
//
// How a frame stores records (docs/format.md): in columns of pages, reads and writes. The numbers
// of a column have one width, in bits, so that decoding has neither a branch nor a chain of loads.
// Pure. Failure: decode_records() says false where bytes can't be what encode_records() made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/record.hpp"

namespace perdure::trace {

// How wide the columns are: just enough, or whole bytes, which zstd finds repetitions in.
enum class Widths { bits, bytes };

// What encode_records() appends, at most.
constexpr std::size_t record_bytes_max(std::size_t records) {
  return 4 + 3 * (1 + (records + 7) / 8 * 32);
}
// What decoding may read beyond its end.
inline constexpr std::size_t decode_spare_bytes = 16;

void encode_records(std::span<const Record> records, Widths widths, std::vector<std::byte>& to);

struct Decoded {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::size_t bytes = 0;  // that the records took
};

// Fills `to`. decode_spare_bytes beyond the end of `from` may be read; the buffer must have them.
// All pages must be below `pages`.
bool decode_records(std::span<const std::byte> from, std::uint32_t pages, std::span<Record> to,
                    Decoded& decoded);
// The same, as a processor without AVX2 does it.
bool decode_records_portably(std::span<const std::byte> from, std::uint32_t pages,
                             std::span<Record> to, Decoded& decoded);

// LEB128: 7 bits a byte, the lowest first.
void put_varint(std::uint64_t value, std::vector<std::byte>& to);
// Takes a number off the front of `from`; false where there is none.
bool take_varint(std::span<const std::byte>& from, std::uint64_t& value);

// Small for small differences of either sign; the difference wraps.
inline std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1U ^ (std::uint64_t{0} - (difference >> 63U));
}
inline std::uint64_t unzigzag(std::uint64_t coded) {
  return coded >> 1U ^ (std::uint64_t{0} - (coded & 1U));
}

}  // namespace perdure::trace
