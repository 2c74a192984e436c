// SPDX-License-Identifier: BSD-3-Clause
#include "base/data_checksum.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "base/environment.hpp"
#include "base/isal.hpp"
#include "base/xxh3_here.hpp"

namespace perdure {
namespace {

bool cpu_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// What ISA-L asks for before it takes its widest CRC.
bool cpu_has_wide_crc() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
#else
  return false;
#endif
}

const Xxh3& xxh3() {
#if defined(__x86_64__)
  static const Xxh3& fastest = cpu_has_avx2() ? xxh3_by_avx2 : xxh3_here;
  return fastest;
#else
  return xxh3_here;
#endif
}

}  // namespace

DataChecksum fastest_data_checksum(bool has_wide_crc, bool has_crc, bool has_avx2) {
  if (has_crc && has_wide_crc) return DataChecksum::crc64;
  return has_crc && !has_avx2 ? DataChecksum::crc64 : DataChecksum::xxh3;
}

Result<DataChecksum> chosen_data_checksum() {
  const std::string wanted = environment("PERDURE_CHECKSUM");
  if (wanted.empty()) {
    static const DataChecksum fastest =
        fastest_data_checksum(cpu_has_wide_crc(), isal() != nullptr, cpu_has_avx2());
    return fastest;
  }
  if (wanted == "crc64") return DataChecksum::crc64;
  if (wanted == "xxh3") return DataChecksum::xxh3;
  return Status(Code::invalid_argument, "PERDURE_CHECKSUM=", wanted, " is neither crc64 nor xxh3");
}

std::uint64_t add_data_piece(DataChecksum kind, const void* bytes, std::size_t size_bytes,
                             std::uint64_t seed) {
  PERDURE_ASSERT(!is_of_pages(kind));
  switch (kind) {
    case DataChecksum::none:
    case DataChecksum::crc64_of_pages:
    case DataChecksum::xxh3_of_pages:
      break;
    case DataChecksum::crc64:
      return crc64(bytes, size_bytes, seed);
    case DataChecksum::xxh3:
      return xxh3().of(bytes, size_bytes, seed);
  }
  return 0;
}

PieceChecksum::PieceChecksum(DataChecksum kind, std::uint64_t seed) : kind_(kind), crc_(seed) {
  if (kind_ == DataChecksum::xxh3) xxh3().begin(state_, seed);
}

void PieceChecksum::add(const void* bytes, std::size_t size_bytes) {
  if (kind_ == DataChecksum::crc64) crc_ = crc64(bytes, size_bytes, crc_);
  if (kind_ == DataChecksum::xxh3) xxh3().add(state_, bytes, size_bytes);
}

std::uint64_t PieceChecksum::value() const {
  return kind_ == DataChecksum::xxh3 ? xxh3().value(state_) : crc_;
}

std::uint64_t data_checksum(DataChecksum kind, const void* bytes, std::size_t size_bytes) {
  const auto* at = static_cast<const std::byte*>(bytes);
  std::uint64_t sum = 0;
  do {
    const std::size_t piece = std::min(size_bytes, data_piece_bytes);
    sum = add_data_piece(kind, at, piece, sum);
    at += piece;
    size_bytes -= piece;
  } while (size_bytes != 0);
  return sum;
}

}  // namespace perdure
