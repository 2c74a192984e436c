// SPDX-License-Identifier: BSD-3-Clause
//
// Flush primitives of x86-64. Each function is compiled for the instruction that it names and only
// reached when the processor has it, so the library itself needs nothing beyond SSE2.
#include <cpuid.h>
#include <immintrin.h>

#include <utility>
#include <vector>

#include "pmem/flush_native.hpp"

namespace perdure {
namespace {

void fence() {
  _mm_sfence();
}

void nothing_to_do(const void* /*address*/, std::size_t /*count*/) {}

// clflush evicts one line after the other; kept for processors without the two below.
void flush_with_clflush(const void* address, std::size_t count) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + count;
  for (std::uintptr_t line = line_of(address, cache_line_bytes); line < end;
       line += cache_line_bytes) {
    _mm_clflush(reinterpret_cast<const void*>(line));
  }
}

// clflushopt evicts lines in parallel.
[[gnu::target("clflushopt")]] void flush_with_clflushopt(const void* address, std::size_t count) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + count;
  for (std::uintptr_t line = line_of(address, cache_line_bytes); line < end;
       line += cache_line_bytes) {
    _mm_clflushopt(reinterpret_cast<void*>(line));
  }
}

// clwb writes lines back in parallel and may leave them in the cache.
[[gnu::target("clwb")]] void flush_with_clwb(const void* address, std::size_t count) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + count;
  for (std::uintptr_t line = line_of(address, cache_line_bytes); line < end;
       line += cache_line_bytes) {
    _mm_clwb(reinterpret_cast<void*>(line));
  }
}

constexpr std::size_t amd_turn_bytes = 1024;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t interleaved_pages = 4;
constexpr std::size_t interleaved_lines = interleaved_pages * page_bytes / cache_line_bytes;

// Four pages at a time, one line of each in turn: four streams keep four hardware prefetchers and
// several memory banks busy. Measured against one ascending stream on an Intel Xeon: equal up to
// 4 MiB, a quarter less time from 64 MiB on. On an AMD EPYC it takes twice the time of one stream.
[[gnu::target("avx512f")]] void copy_pages_with_avx512(std::byte* to, const std::byte* from) {
  for (std::size_t i = 0; i < page_bytes; i += cache_line_bytes) {
    const __m512i a = _mm512_loadu_si512(from + i);
    const __m512i b = _mm512_loadu_si512(from + i + page_bytes);
    const __m512i c = _mm512_loadu_si512(from + i + 2 * page_bytes);
    const __m512i d = _mm512_loadu_si512(from + i + 3 * page_bytes);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + page_bytes), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 2 * page_bytes), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 3 * page_bytes), d);
  }
}

// One store per line: the write-combining buffer is full at once and leaves at once.
[[gnu::target("avx512f")]] void copy_with_avx512(std::byte* to, const std::byte* from,
                                                 std::size_t lines) {
  constexpr std::size_t step = interleaved_lines * cache_line_bytes;
  for (; lines >= interleaved_lines; lines -= interleaved_lines, to += step, from += step) {
    copy_pages_with_avx512(to, from);
  }
  for (; lines >= 4; lines -= 4, to += 256, from += 256) {
    const __m512i a = _mm512_loadu_si512(from);
    const __m512i b = _mm512_loadu_si512(from + 64);
    const __m512i c = _mm512_loadu_si512(from + 128);
    const __m512i d = _mm512_loadu_si512(from + 192);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 128), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 192), d);
  }
  for (; lines != 0; --lines, to += 64, from += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

[[gnu::target("avx")]] void copy_with_avx(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines != 0; --lines, to += 64, from += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), high);
  }
}

void copy_with_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines != 0; --lines, to += 64, from += 64) {
    for (std::size_t part = 0; part < 64; part += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
    }
  }
}

template <auto copy_lines, auto flush>
FlushPrimitives primitives(const char* flush_name, const char* copy_name) {
  return {flush_name, copy_name, flush, copy_in_lines<copy_lines, flush>, fence, nothing_to_do};
}

// With each way to copy, the fastest first.
template <auto flush>
void add(const char* flush_name, std::vector<FlushPrimitives>& found) {
  const std::size_t first = found.size();
  if (__builtin_cpu_supports("avx512f")) {
    found.push_back(primitives<copy_with_avx512, flush>(flush_name, "avx512-nt"));
  }
  if (__builtin_cpu_supports("avx")) {
    found.push_back(primitives<copy_with_avx, flush>(flush_name, "avx-nt"));
  }
  found.push_back(primitives<copy_with_sse2, flush>(flush_name, "sse2-nt"));
  if (!__builtin_cpu_is("amd")) return;
  if (found.size() == first + 3) std::swap(found[first], found[first + 1]);
  for (std::size_t i = first; i < found.size(); ++i) found[i].turn_bytes = amd_turn_bytes;
}

std::vector<FlushPrimitives> detect() {
  __builtin_cpu_init();
  std::vector<FlushPrimitives> found;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) ebx = 0;
  constexpr unsigned clwb_bit = 1U << 24U;
  constexpr unsigned clflushopt_bit = 1U << 23U;
  if ((ebx & clwb_bit) != 0) add<flush_with_clwb>("clwb", found);
  if ((ebx & clflushopt_bit) != 0) add<flush_with_clflushopt>("clflushopt", found);
  add<flush_with_clflush>("clflush", found);  // every x86-64 has it
  return found;
}

}  // namespace

std::span<const FlushPrimitives> native_flush_primitives() {
  static const std::vector<FlushPrimitives> found = detect();
  return found;
}

}  // namespace perdure
