// SPDX-License-Identifier: BSD-3-Clause
#include "trace/decode_avx2.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>

namespace perdure::trace {

#ifdef __x86_64__

namespace {

constexpr unsigned group = 8;
constexpr unsigned half = 4;        // numbers of a half of a register, which is shuffled by itself
constexpr unsigned width_max = 25;  // a number and the bits before it in its byte are 32 bits

static_assert(sizeof(Record) == 3 * sizeof(std::uint32_t));

// How eight numbers are taken out of bytes: four bytes to each, shifted and cut off.
struct Unpacking {
  __m256i bytes, shifts, mask;
  unsigned second_half;  // where its bytes begin
};

[[gnu::target("avx2")]] Unpacking unpacking_of(unsigned width) {
  alignas(32) std::array<std::uint8_t, 32> bytes = {};
  alignas(32) std::array<std::uint32_t, group> shifts = {};
  const unsigned second_half = half * width / 8;
  for (unsigned i = 0; i < group; ++i) {
    const unsigned bit = i * width - (i < half ? 0 : 8 * second_half);
    shifts[i] = bit % 8;
    for (unsigned j = 0; j < 4; ++j) bytes[4 * i + j] = static_cast<std::uint8_t>(bit / 8 + j);
  }
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(bytes.data())),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(shifts.data())),
          _mm256_set1_epi32(static_cast<int>((1U << width) - 1)), second_half};
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i take(const Unpacking& how,
                                                                const std::byte* from) {
  const auto* second = reinterpret_cast<const __m128i*>(from + how.second_half);
  const auto* first = reinterpret_cast<const __m128i*>(from);
  const __m256i all = _mm256_set_m128i(_mm_loadu_si128(second), _mm_loadu_si128(first));
  const __m256i words = _mm256_shuffle_epi8(all, how.bytes);
  return _mm256_and_si256(_mm256_srlv_epi32(words, how.shifts), how.mask);
}

// Differences, coded as zigzag32() does, become sums of all up to each.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i sums_of(__m256i coded) {
  const __m256i sign = _mm256_and_si256(coded, _mm256_set1_epi32(1));
  __m256i sum =
      _mm256_xor_si256(_mm256_srli_epi32(coded, 1), _mm256_sub_epi32(_mm256_setzero_si256(), sign));
  sum = _mm256_add_epi32(sum, _mm256_slli_si256(sum, 4));
  sum = _mm256_add_epi32(sum, _mm256_slli_si256(sum, 8));
  const __m256i first_half = _mm256_permutevar8x32_epi32(sum, _mm256_set1_epi32(3));
  return _mm256_add_epi32(sum, _mm256_blend_epi32(_mm256_setzero_si256(), first_half, 0xf0));
}

// Adds eight numbers of 32 bits to four sums of 64.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i add(__m256i sums, __m256i numbers) {
  const __m256i even = _mm256_and_si256(numbers, _mm256_set1_epi64x(0xffffffff));
  return _mm256_add_epi64(sums, _mm256_add_epi64(even, _mm256_srli_epi64(numbers, 32)));
}

[[gnu::target("avx2"), gnu::always_inline]] inline std::uint64_t total(__m256i sums) {
  alignas(32) std::array<std::uint64_t, 4> parts = {};
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts.data()), sums);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

// Three numbers in turns: a, b, c, a and so on.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i mixed(__m256i a, __m256i b, __m256i c) {
  return _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x92), c, 0x24);
}

// The three columns become records: of each of three registers, every third number is from one.
[[gnu::target("avx2"), gnu::always_inline]] inline void store(__m256i pages, __m256i reads,
                                                              __m256i writes, Record* to) {
  const __m256i p = _mm256_permutevar8x32_epi32(pages, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
  const __m256i r = _mm256_permutevar8x32_epi32(reads, _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
  const __m256i w = _mm256_permutevar8x32_epi32(writes, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
  auto* out = reinterpret_cast<__m256i*>(to);
  // p0 r0 w0 p1 r1 w1 p2 r2 | w2 p3 r3 w3 p4 r4 w4 p5 | r5 w5 p6 r6 w6 p7 r7 w7
  _mm256_storeu_si256(out, mixed(p, r, w));
  _mm256_storeu_si256(out + 1, mixed(w, p, r));
  _mm256_storeu_si256(out + 2, mixed(r, w, p));
}

}  // namespace

bool can_decode_with_avx2(const PackedColumns& columns) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return has_avx2 && std::ranges::all_of(columns, [](const PackedColumn& column) {
           return column.width <= width_max;
         });
}

[[gnu::target("avx2")]] void decode_with_avx2(PackedColumns& columns, std::size_t groups,
                                              Record* to, DecodingSums& sums) {
  auto& [differences, reads, writes] = columns;
  const Unpacking of_pages = unpacking_of(differences.width);
  const Unpacking of_reads = unpacking_of(reads.width), of_writes = unpacking_of(writes.width);
  __m256i page = _mm256_set1_epi32(static_cast<int>(sums.page));
  __m256i page_max = _mm256_set1_epi32(static_cast<int>(sums.page_max));
  __m256i reads_sum = _mm256_setzero_si256(), writes_sum = _mm256_setzero_si256();
  for (; groups != 0; --groups, to += group) {
    const __m256i pages = _mm256_add_epi32(page, sums_of(take(of_pages, differences.next)));
    const __m256i read = take(of_reads, reads.next), written = take(of_writes, writes.next);
    differences.next += differences.width;
    reads.next += reads.width;
    writes.next += writes.width;
    page = _mm256_permutevar8x32_epi32(pages, _mm256_set1_epi32(7));
    page_max = _mm256_max_epu32(page_max, pages);
    reads_sum = add(reads_sum, read);
    writes_sum = add(writes_sum, written);
    store(pages, read, written, to);
  }
  sums.page = static_cast<std::uint32_t>(_mm256_cvtsi256_si32(page));
  alignas(32) std::array<std::uint32_t, group> highest = {};
  _mm256_store_si256(reinterpret_cast<__m256i*>(highest.data()), page_max);
  sums.page_max = *std::ranges::max_element(highest);
  sums.reads += total(reads_sum);
  sums.writes += total(writes_sum);
}

#else

bool can_decode_with_avx2(const PackedColumns& /*columns*/) {
  return false;
}
void decode_with_avx2(PackedColumns& /*columns*/, std::size_t /*groups*/, Record* /*to*/,
                      DecodingSums& /*sums*/) {}

#endif

}  // namespace perdure::trace
