// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/exchange.hpp"

#include <bit>

namespace perdure::ipv_check {
namespace {

constexpr std::uint32_t iterations_min = 4;  // each array is stored to twice, and read between
constexpr std::size_t bytes_min = 4096;      // a pair has whole pages

// In every iteration of a parity, and in none of the other.
bool takes_turns(const Tracked& tracked, std::size_t odd, std::uint32_t complete) {
  const std::uint64_t every = odd != 0 ? (complete + 1) / 2 : complete / 2;
  return tracked.storing[odd] == every && tracked.storing[1 - odd] == 0;
}

// Without what follows the loop.
RecordWord settled(const Block& block, std::size_t number, std::uint32_t complete) {
  RecordWord word = block.words.get()[number];
  if (word.iteration <= complete) word.turn(complete);
  return word;
}

ByteMask unequal(const Block& one, const Block& other, std::size_t number) {
  ByteMask mask = 0;
  for (std::size_t bit = 0; bit < word_bytes; ++bit) {
    const std::size_t at = number * word_bytes + bit;
    if (at >= one.bytes()) break;
    // Memory of the program.
    const auto* const a = reinterpret_cast<const unsigned char*>(one.begin + at);
    const auto* const b = reinterpret_cast<const unsigned char*>(other.begin + at);
    if (*a != *b) mask = static_cast<ByteMask>(mask | 1U << bit);
  }
  return mask;
}

void note(Exchange& pair, ExchangeBreach breach, std::size_t number, ByteMask bytes) {
  if (bytes == 0 || pair.breach != ExchangeBreach::none) return;
  pair.breach = breach;
  pair.byte = number * word_bytes + static_cast<unsigned>(std::countr_zero(bytes));
}

// Whether all iterations store to the same bytes; those of both arrays are noted.
void judge_stores(Exchange& pair, const Block& odd, const Block& even, std::uint32_t complete) {
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i < words_of(odd.bytes()); ++i) {
    const ByteMask one = settled(odd, i, complete).stored;
    stored += count_bytes(one);
    note(pair, ExchangeBreach::stored, i,
         static_cast<ByteMask>(one ^ settled(even, i, complete).stored));
  }
  for (const Tracked* tracked : {odd.tracked, even.tracked}) {
    if (tracked->storing_min == stored && tracked->stored_max == stored) continue;
    pair.breach = ExchangeBreach::stored;
  }
}

Exchange judge_exchange(const Block& odd, const Block& even, std::uint32_t complete) {
  Exchange pair{odd.tracked, even.tracked, ExchangeBreach::none, std::nullopt};
  judge_stores(pair, odd, even, complete);
  for (std::size_t i = 0; i < words_of(odd.bytes()); ++i) {
    const RecordWord one = settled(odd, i, complete);
    const RecordWord other = settled(even, i, complete);
    note(pair, ExchangeBreach::read, i,
         static_cast<ByteMask>(one.alive_after[0] | other.alive_after[1]));
    const auto walls = minus(static_cast<ByteMask>(one.read | other.read), one.stored);
    if (walls == 0) continue;
    note(pair, ExchangeBreach::walls, i, static_cast<ByteMask>(walls & unequal(odd, even, i)));
  }
  return pair;
}

}  // namespace

std::vector<Exchange> find_exchanges(BlockMap& blocks, std::uint32_t complete) {
  std::vector<Exchange> found;
  if (complete < iterations_min) return found;
  std::vector<const Block*> by_turn[2];
  blocks.for_all([&](const Block& block) {
    const bool alone = block.words != nullptr && block.tracked->blocks == 1;
    for (std::size_t odd = 0; alone && odd < 2; ++odd) {
      const bool fits = block.bytes() >= bytes_min && takes_turns(*block.tracked, odd, complete);
      if (fits) by_turn[odd].push_back(&block);
    }
  });
  for (const Block* odd : by_turn[1]) {
    std::optional<Exchange> best;
    auto taken = by_turn[0].end();
    for (auto even = by_turn[0].begin(); even != by_turn[0].end(); ++even) {
      if (odd->bytes() != (*even)->bytes()) continue;
      const Exchange pair = judge_exchange(*odd, **even, complete);
      if (best && pair.breach != ExchangeBreach::none) continue;
      best = pair;
      taken = even;
      if (pair.breach == ExchangeBreach::none) break;
    }
    if (!best) continue;
    found.push_back(*best);
    by_turn[0].erase(taken);
  }
  return found;
}

}  // namespace perdure::ipv_check
