// SPDX-License-Identifier: BSD-3-Clause
//
// Data checksums: of the blocks of an array's copies. Which one an array has is noted with it on
// the medium, so that any processor can compare them; a new array gets the fastest of this one.
//
//   crc64   CRC-64 (checksum.hpp): fastest where ISA-L computes it by wide carry-less
//           multiplication (AVX-512 and VPCLMULQDQ), 55 GB/s in the cache; 12 GB/s with the narrow
//           one, so that a copy with checksums takes 1.6 times one without
//   xxh3    XXH3 of 64 bits (Y. Collet's xxHash): 55 GB/s with AVX2, 5 without. Of pieces of
//           data_piece_bytes, the hash of each being the seed of the next one
//   crc64_of_pages, xxh3_of_pages
//           one of these of the checksums of the block's pages (block_checksum.hpp in pool), so
//           that a block of which one page changed is not read whole
//
// Metadata has CRC-64 everywhere. Either misses a random error with probability 2^-64; CRC-64 also
// finds every error of up to 64 contiguous bits, and XXH3 makes no such promise.
//
// Threads: any. Failure: PERDURE_CHECKSUM with another word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "base/xxh3.hpp"

namespace perdure {

// The numbers are on the medium.
enum class DataChecksum : std::uint8_t {
  none = 0,
  crc64 = 1,
  xxh3 = 2,
  crc64_of_pages = 3,
  xxh3_of_pages = 4
};
constexpr std::uint32_t data_checksum_newest = 4;

constexpr bool is_of_pages(DataChecksum kind) {
  return kind == DataChecksum::crc64_of_pages || kind == DataChecksum::xxh3_of_pages;
}
// What a page is summed with, and the sums; the others are themselves.
constexpr DataChecksum of_one_page(DataChecksum kind) {
  if (kind == DataChecksum::crc64_of_pages) return DataChecksum::crc64;
  return kind == DataChecksum::xxh3_of_pages ? DataChecksum::xxh3 : kind;
}
constexpr DataChecksum by_pages(DataChecksum kind) {
  if (kind == DataChecksum::crc64) return DataChecksum::crc64_of_pages;
  return kind == DataChecksum::xxh3 ? DataChecksum::xxh3_of_pages : kind;
}

// As large as both a copy and a checksum of it are fastest: it is still in the first cache.
constexpr std::size_t data_piece_bytes = std::size_t{32} << 10U;

// Of new arrays: the fastest, or what PERDURE_CHECKSUM says.
Result<DataChecksum> chosen_data_checksum();
// By what the processor and the machine have.
DataChecksum fastest_data_checksum(bool has_wide_crc, bool has_crc, bool has_avx2);

// From here on only of the first three kinds.
//
// Of one piece, or of the next one of a block, whose pieces before have the checksum `seed`. All
// pieces but the last one have data_piece_bytes.
std::uint64_t add_data_piece(DataChecksum kind, const void* bytes, std::size_t size_bytes,
                             std::uint64_t seed);
// The same, of a piece whose bytes come in turns.
class PieceChecksum {
 public:
  PieceChecksum(DataChecksum kind, std::uint64_t seed);
  void add(const void* bytes, std::size_t size_bytes);
  std::uint64_t value() const;

 private:
  DataChecksum kind_;
  std::uint64_t crc_;  // the seed where nothing is computed
  Xxh3State state_;
};
// Of a block.
std::uint64_t data_checksum(DataChecksum kind, const void* bytes, std::size_t size_bytes);

}  // namespace perdure
