// SPDX-License-Identifier: BSD-3-Clause
//
// What flush.cpp chooses from: the flush primitives of the processor family that was compiled in
// (flush_x86_64.cpp or flush_aarch64.cpp), and the line arithmetic that both share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmem/flush.hpp"

namespace perdure {

// What this processor can do, best first; never empty. Ways to flush may occur with several ways to
// copy, the fastest first.
std::span<const FlushPrimitives> native_flush_primitives();

// The first line of `line_bytes` (a power of two) that holds `address`.
inline std::uintptr_t line_of(const void* address, std::size_t line_bytes) {
  return reinterpret_cast<std::uintptr_t>(address) & ~(std::uintptr_t{line_bytes} - 1);
}

// CTR_EL0.DminLine is the logarithm of the smallest data cache line in 4-byte words.
constexpr std::size_t aarch64_line_bytes(std::uint64_t ctr_el0) {
  return std::size_t{4} << ((ctr_el0 >> 16U) & 0xfU);
}

// A copy whose whole destination lines go through `copy_lines(to, from, lines)`, and whose ragged
// ends are stored as usual and flushed: a non-temporal store of part of a line would make the
// memory controller merge it with what is there, and is slower than the cache.
template <auto copy_lines, auto flush>
void copy_in_lines(void* destination, const void* source, std::size_t count) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % cache_line_bytes;
  std::size_t head = past_line == 0 ? 0 : cache_line_bytes - past_line;
  if (head > count) head = count;
  if (head != 0) {
    std::memcpy(to, from, head);
    flush(to, head);
  }
  const std::size_t lines = (count - head) / cache_line_bytes;
  if (lines != 0) copy_lines(to + head, from + head, lines);
  const std::size_t done = head + lines * cache_line_bytes;
  if (done != count) {
    std::memcpy(to + done, from + done, count - done);
    flush(to + done, count - done);
  }
}

}  // namespace perdure
