// SPDX-License-Identifier: BSD-3-Clause
//
// StackDistance: at which depth of the LRU stack a page is when it is referenced again.
//
// Each reference takes the next tick; a bit says whether the tick is a page's last one. The
// depth is the number of bits set after the page's tick, and itself. A tree over the words of bits
// has, for each word or node below, the number of bits set before it in its node. So a count is a
// sum of one number from each level, and clearing a bit changes one node of each, a cache line: no
// loop whose end is hard to predict. A node of the two lowest levels has 32 numbers of 16 bits,
// those above have 16 of 32: the number of levels grows as log P. When ticks run out, those in use
// are moved together. Each page has a note as well, a number for the caller, beside its tick.
// Threads: one. Failure: none. Memory: at most 21 bytes for each page.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdure::sim {

class StackDistance {
 public:
  static constexpr std::uint32_t cold = 0;

  explicit StackDistance(std::uint32_t first_note = 0);
  void reserve(std::uint32_t pages) { of_page_.reserve(pages); }
  void grow(std::uint32_t pages) { of_page_.resize(pages, {none, first_note_}); }

  // References `page`: its depth before, 1 for the page on top, or cold if it was not there.
  [[gnu::always_inline]] inline std::uint32_t reference(std::uint32_t page) {
    std::uint32_t tick = of_page_[page].tick;
    if (tick + 1 == next_ && tick != none) return 1;
    if (next_ == ticks_) [[unlikely]] {
      compact();
      tick = of_page_[page].tick;
    }
    std::uint32_t depth = cold;
    if (tick != none) {
      depth = live_ - remove(tick);
    } else {
      ++live_;
    }
    page_of_[next_] = page;
    of_page_[page].tick = next_;
    set_next();
    return depth;
  }

  std::uint32_t& note(std::uint32_t page) { return of_page_[page].note; }
  std::uint32_t note(std::uint32_t page) const { return of_page_[page].note; }

  // `page` will be referenced soon.
  void prefetch(std::uint32_t page) const { __builtin_prefetch(&of_page_[page], 1); }

  std::uint32_t pages() const { return live_; }

  // Calls visit(page, depth) for every page on the stack, from the bottom, which is deepest.
  template <typename Visit>
  void visit(Visit visit) const {
    std::uint32_t depth = live_;
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t left = words_[word]; left != 0; left &= left - 1) {
        visit(page_of_[word * 64 + static_cast<std::uint32_t>(std::countr_zero(left))], depth--);
      }
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t levels_max = 5;  // above the two lowest: more than 2^32 ticks

  struct PageState {
    std::uint32_t tick;
    std::uint32_t note;
  };

  // Of each word or node below: bits that are set before it in this node.
  template <typename Number>
  struct alignas(64) Node {
    static constexpr std::uint32_t size = 64 / sizeof(Number);
    Number before[size] = {};
  };
  using Narrow = Node<std::uint16_t>;  // at most 31 · 32 · 64
  using Wide = Node<std::uint32_t>;

  // Node i has 1 at every place after the i-th.
  template <typename Number>
  static constexpr auto places_after() {
    std::array<Node<Number>, Node<Number>::size> nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t j = i + 1; j < nodes.size(); ++j) nodes[i].before[j] = 1;
    }
    return nodes;
  }
  template <typename Number>
  static constexpr auto after = places_after<Number>();

  // A bit below the i-th place is cleared; how many are set in places before it.
  template <typename Number>
  [[gnu::always_inline]] static inline std::uint32_t remove_below(Node<Number>& node,
                                                                  std::uint32_t i) {
    const std::uint32_t count = node.before[i];
    Number* __restrict before = node.before;  // so that vector instructions do it
    const Number* __restrict ones = after<Number>[i].before;
    for (std::uint32_t j = 0; j < Node<Number>::size; ++j) {
      before[j] = static_cast<Number>(before[j] - ones[j]);
    }
    return count;
  }

  template <typename Number>
  static bool enter(Node<Number>* nodes, std::uint32_t index, std::uint32_t& count);
  template <typename Number>
  static void fill(Node<Number>* nodes, std::uint32_t count, std::uint32_t below);

  // Clears the bit of `tick`; how many are set in ticks before it.
  [[gnu::always_inline]] inline std::uint32_t remove(std::uint32_t tick) {
    const std::uint64_t bit = std::uint64_t{1} << tick % 64;
    std::uint32_t index = tick / 64;
    std::uint64_t& word = words_[index];
    std::uint32_t count = bits(word & (bit - 1));
    word &= ~bit;
    for (auto& level : narrow_) {
      count += remove_below(level[index / Narrow::size], index % Narrow::size);
      index /= Narrow::size;
    }
    for (std::uint32_t level = 0; level < levels_; ++level, index /= Wide::size) {
      count += remove_below(wide_[first_[level] + index / Wide::size], index % Wide::size);
    }
    return count;
  }

  // What is in the tree for the time to come counts for nothing: it is set when time comes there.
  void set_next() {
    words_[next_ / 64] |= std::uint64_t{1} << next_ % 64;
    if (++next_ % 64 == 0 && next_ != ticks_) enter_word(next_ / 64);
  }

  static std::uint32_t bits(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::popcount(word));
  }

  void enter_word(std::uint32_t word);
  void compact();
  void make_full_tree();

  std::vector<PageState> of_page_;
  std::vector<std::uint32_t> page_of_;  // by tick
  std::vector<std::uint64_t> words_;
  std::array<std::vector<Narrow>, 2> narrow_;  // of words, and of nodes of these
  std::vector<Wide> wide_;                     // level by level, from below
  std::array<std::uint32_t, levels_max> first_ = {};
  std::uint32_t levels_ = 0;  // wide ones
  std::uint32_t ticks_ = 0;
  std::uint32_t next_ = 0;  // tick of the next reference
  std::uint32_t live_ = 0;
  std::uint32_t first_note_;
};

}  // namespace perdure::sim
