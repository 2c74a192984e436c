// SPDX-License-Identifier: BSD-3-Clause
#include "base/checksum.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/isal.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace perdure {
namespace {

// ISA-L's code for AVX-512 returns with the upper halves of vector registers in use. From then on
// every SSE instruction of the caller must keep them, which makes a solver that was not compiled
// for AVX two to three times slower on some processors (seen: AMD EPYC with AVX-512), for good.
#if defined(__x86_64__)
[[gnu::noinline, gnu::target("avx")]] void clear_upper_halves() {
  _mm256_zeroupper();
}
void leave_vector_code() {
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) clear_upper_halves();
}
#else
void leave_vector_code() {}
#endif

// Eight bytes at a time: entry [i][b] is what byte b contributes if i more bytes follow.
using Tables = std::array<std::array<std::uint64_t, 256>, 8>;
constexpr std::uint64_t ecma_reflected = 0xc96c5795d7870f42U;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1U ^ ((rest & 1U) != 0 ? ecma_reflected : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[i - 1][byte];
      tables[i][byte] = before >> 8U ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

}  // namespace

std::string digits_of(std::uint64_t checksum) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(checksum));
  return digits.data();
}

std::uint64_t crc64_by_table(const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr Tables tables = make_tables();
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t rest = ~seed;
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= rest;
    rest = 0;
    for (unsigned i = 0; i < 8; ++i) rest ^= tables[7 - i][word >> 8 * i & 0xffU];
  }
  for (; size_bytes != 0; --size_bytes, ++at) rest = rest >> 8U ^ tables[0][(rest ^ *at) & 0xffU];
  return ~rest;
}

std::uint64_t crc64(const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
  constexpr std::size_t worth_loading_bytes = 1024;
  if (size_bytes < worth_loading_bytes && !isal_is_loaded()) {
    return crc64_by_table(bytes, size_bytes, seed);
  }
  const Isal* const library = isal();
  if (library == nullptr) return crc64_by_table(bytes, size_bytes, seed);
  const std::uint64_t checksum =
      library->crc64(seed, static_cast<const unsigned char*>(bytes), size_bytes);
  leave_vector_code();
  return checksum;
}

}  // namespace perdure
