// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/sum_and_copy.hpp"

#include <algorithm>

namespace perdure {
namespace {

constexpr std::size_t ahead_bytes = 8192;

// Of bytes that may be nobody's.
void fetch(std::uintptr_t at, std::size_t count) {
  for (std::size_t line = 0; line < count; line += cache_line_bytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(at + line));
  }
}

}  // namespace

std::uint64_t sum_and_copy(std::byte* to, const void* source, std::size_t count, DataChecksum kind,
                           const FlushPrimitives& primitives) {
  const auto* from = static_cast<const std::byte*>(source);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < count;) {
    const std::size_t end = std::min(count, at + data_piece_bytes);
    PieceChecksum piece(kind, sum);
    while (at < end) {
      const std::size_t turn = std::min(primitives.turn_bytes, end - at);
      fetch(reinterpret_cast<std::uintptr_t>(from + at) + ahead_bytes, turn);
      piece.add(from + at, turn);
      primitives.copy(to + at, from + at, turn);
      at += turn;
    }
    sum = piece.value();
  }
  return sum;
}

}  // namespace perdure
