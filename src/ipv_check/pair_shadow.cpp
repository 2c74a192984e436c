// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/pair_shadow.hpp"

#include <bit>
#include <utility>

namespace perdure::ipv_check {
namespace {

constexpr std::byte stale_byte{never_stored};

template <typename Use>
void for_bytes(std::size_t word, ByteMask mask, Use use) {
  for (unsigned bit = 0; bit < word_bytes; ++bit) {
    const auto one = static_cast<ByteMask>(1U << bit);
    if ((mask & one) != 0) use(word * word_bytes + bit, one);
  }
}

}  // namespace

PairShadow::PairShadow(std::string name, std::byte* a, std::byte* b, std::size_t bytes)
    : Shadow(std::move(name), bytes), arrays_{a, b}, words_(words_of(bytes)) {}

void PairShadow::make_stale(unsigned array, std::size_t word, ByteMask mask) {
  words_[word].stale[array] |= mask;
  for_bytes(word, mask, [&](std::size_t at, ByteMask) { arrays_[array][at] = stale_byte; });
}

ByteMask PairShadow::stale(unsigned array, std::size_t word) const {
  ByteMask mask = words_[word].stale[array];
  for_bytes(word, mask, [&](std::size_t at, ByteMask) {
    if (arrays_[array][at] != stale_byte) mask = 0;
  });
  return mask;
}

void PairShadow::start() {
  for_words(0, bytes(), [&](std::size_t word, ByteMask mask) {
    for_bytes(word, mask, [&](std::size_t at, ByteMask one) {
      if (arrays_[0][at] != arrays_[1][at]) make_stale(1, word, one);
    });
  });
}

// Adds to the breach of the rule that `found` has from `before` on.
void PairShadow::note(Breaches& found, std::size_t before, Rule rule, unsigned array,
                      std::size_t word, ByteMask mask) const {
  if (mask == 0) return;
  std::size_t place = before;
  while (place < found.size() && found[place].rule != rule) ++place;
  if (place == found.size()) {
    const Word& of = words_[word];
    found.push_back({.rule = rule,
                     .offset = word * word_bytes + static_cast<unsigned>(std::countr_zero(mask)),
                     .current = of.iteration,
                     .stored_at = of.stored_at,
                     .other = array == 1});
  }
  found[place].bytes += count_bytes(mask);
}

void PairShadow::load(bool other, std::size_t offset, std::size_t count, Breaches& found) {
  const unsigned array = other ? 1 : 0;
  const std::size_t before = found.size();
  for_words(offset, offset + count, [&](std::size_t word, ByteMask mask) {
    if ((words_[word].stale[array] & mask) == 0) return;
    const auto missing = static_cast<ByteMask>(stale(array, word) & mask);
    const ByteMask stored = words_[word].stored;
    note(found, before, Rule::read_before_store, array, word,
         static_cast<ByteMask>(missing & stored));
    note(found, before, Rule::unequal_walls, array, word, minus(missing, stored));
  });
}

void PairShadow::store(bool other, std::size_t offset, std::size_t count, SiteNumber site,
                       std::uint32_t iteration, Breaches& found) {
  const unsigned array = other ? 1 : 0;
  if (array == alive_) {
    found.push_back(
        {.rule = Rule::store_to_committed, .offset = offset, .bytes = count, .other = other});
    return;
  }
  for_words(offset, offset + count, [&](std::size_t number, ByteMask mask) {
    Word& word = words_[number];
    word.iteration = iteration;
    word.stored_at = site;
    word.stored |= mask;
    word.stale[array] = minus(word.stale[array], mask);
  });
}

void PairShadow::persist(bool commits, Breaches& found) {
  const unsigned written = 1 - alive_;
  const std::size_t before = found.size();
  for (std::size_t word = 0; word < words_.size(); ++word) {
    const ByteMask stored = words_[word].stored;
    note(found, before, Rule::not_overwritten, written, word,
         static_cast<ByteMask>(stale(written, word) & stored));
    words_[word].stale[written] = minus(words_[word].stale[written], stored);  // is reported once
    make_stale(alive_, word, stored);
  }
  alive_ = written;
  ++counts_.swaps;
  if (commits) ++counts_.versions;
}

}  // namespace perdure::ipv_check
