// SPDX-License-Identifier: BSD-3-Clause
#include "sim/stack_distance.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure::sim {
namespace {

constexpr std::uint32_t ticks_min = 4096;

std::uint32_t parts_of(std::uint32_t number, std::uint32_t size) {
  return (number + size - 1) / size;
}

}  // namespace

// Time comes to the place `index` of a level: `count` bits are in the place before, and become the
// sum of those in its node. False where the place is the first one of its node, which is then new.
template <typename Number>
bool StackDistance::enter(Node<Number>* nodes, std::uint32_t index, std::uint32_t& count) {
  constexpr std::uint32_t size = Node<Number>::size;
  count += nodes[(index - 1) / size].before[(index - 1) % size];
  const bool is_first = index % size == 0;
  nodes[index / size].before[index % size] = static_cast<Number>(is_first ? 0 : count);
  return !is_first;
}

// As if every bit were set; `below` is how many there are below a place.
template <typename Number>
void StackDistance::fill(Node<Number>* nodes, std::uint32_t count, std::uint32_t below) {
  Node<Number> full;
  for (std::uint32_t i = 0; i < full.size; ++i) full.before[i] = static_cast<Number>(i * below);
  std::fill_n(nodes, count, full);
}

StackDistance::StackDistance(std::uint32_t first_note) : first_note_(first_note) {
  compact();
}

void StackDistance::enter_word(std::uint32_t word) {
  std::uint32_t count = bits(words_[word - 1]);
  std::uint32_t index = word;
  for (auto& level : narrow_) {
    if (enter(level.data(), index, count)) return;
    index /= Narrow::size;
  }
  for (std::uint32_t level = 0; level < levels_; ++level, index /= Wide::size) {
    if (enter(&wide_[first_[level]], index, count)) return;
  }
}

// Moves the ticks in use together, in their order, and makes room for twice as many again.
void StackDistance::compact() {
  std::uint32_t kept = 0;
  visit([&](std::uint32_t page, std::uint32_t) {
    page_of_[kept] = page;
    of_page_[page].tick = kept++;
  });
  PERDURE_ASSERT(kept == live_);
  const std::uint64_t wanted = (std::uint64_t{live_} * 3 / 64 + 1) * 64;
  PERDURE_ASSERT(wanted < none);
  ticks_ = std::max({ticks_, ticks_min, static_cast<std::uint32_t>(wanted)});
  page_of_.reserve(ticks_);  // and no more
  page_of_.resize(ticks_);
  words_.assign(ticks_ / 64, 0);
  std::fill_n(words_.begin(), kept / 64, ~std::uint64_t{0});
  if (kept % 64 != 0) words_[kept / 64] = (std::uint64_t{1} << kept % 64) - 1;
  next_ = kept;
  make_full_tree();
}

// All bits before next_ are set, and those after it count for nothing.
void StackDistance::make_full_tree() {
  std::uint32_t nodes = ticks_ / 64, below = 64;
  for (auto& level : narrow_) {
    nodes = parts_of(nodes, Narrow::size);
    level.resize(nodes);
    fill(level.data(), nodes, below);
    below *= Narrow::size;
  }
  std::uint32_t size = 0;
  for (levels_ = 0; nodes > 1; ++levels_, below *= Wide::size) {
    first_[levels_] = size;
    nodes = parts_of(nodes, Wide::size);
    size += nodes;
    wide_.resize(size);
    fill(&wide_[first_[levels_]], nodes, below);
  }
}

}  // namespace perdure::sim
