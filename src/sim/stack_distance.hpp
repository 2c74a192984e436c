// StackDistance: at which depth of the LRU stack a page stands when it is referenced again.
//
// Each reference takes the next slot of time; a bit says whether the slot is a page's last one. The
// depth is the number of bits set behind the page's slot, and itself. A tree of nodes of 16 over
// the words has, for each word or node below, how many bits stand before it in its node. So a count
// is a sum of one number from each level, and clearing a bit changes one node of each: no loop
// whose end is hard to predict. The number of levels grows as log P. When slots run out, those in
// use are moved together. Threads: one. Failure: none. Memory: at most 17 bytes for each page.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace perdure::sim {

class StackDistance {
 public:
  static constexpr std::uint32_t cold = 0;

  StackDistance();
  void reserve(std::uint32_t pages) { slot_of_.reserve(pages); }
  void grow(std::uint32_t pages) { slot_of_.resize(pages, none); }

  // References `page`: its depth before, 1 for the page on top, or cold if it was not there.
  std::uint32_t reference(std::uint32_t page) {
    const std::uint32_t slot = slot_of_[page];
    if (slot + 1 == next_ && slot != none) return 1;
    if (next_ == slots_) [[unlikely]] {
      compact();
      return reference(page);
    }
    std::uint32_t depth = cold;
    if (slot != none) {
      depth = live_ - remove(slot);
    } else {
      ++live_;
    }
    page_of_[next_] = page;
    slot_of_[page] = next_;
    set_next();
    return depth;
  }

  // `page` will be referenced soon.
  void prefetch(std::uint32_t page) const { __builtin_prefetch(&slot_of_[page], 1); }

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
  static constexpr std::uint32_t fan_out = 16;
  static constexpr std::uint32_t lanes = 4;       // of a vector register
  static constexpr std::uint32_t levels_max = 7;  // 64 · 16^7 slots are more than 2^32

  // Sixteen numbers, of each word or node below: bits that stand before it in this node.
  using Lanes = std::int32_t __attribute__((vector_size(16)));
  struct alignas(64) Node {
    Lanes before[fan_out / lanes];
  };

  // The number of a word, or node of the level below, with this index.
  std::uint32_t get(std::uint32_t level, std::uint32_t index) const {
    const Node& node = nodes_[first_[level] + index / fan_out];
    return static_cast<std::uint32_t>(node.before[index % fan_out / lanes][index % lanes]);
  }
  void set(std::uint32_t level, std::uint32_t index, std::uint32_t count) {
    Node& node = nodes_[first_[level] + index / fan_out];
    node.before[index % fan_out / lanes][index % lanes] = static_cast<std::int32_t>(count);
  }

  // Clears the bit of `slot`; how many are set in slots before it.
  std::uint32_t remove(std::uint32_t slot) {
    const std::uint64_t bit = std::uint64_t{1} << slot % 64;
    std::uint64_t& word = words_[slot / 64];
    std::uint32_t count = bits(word & (bit - 1));
    word &= ~bit;
    std::uint32_t index = slot / 64;
    for (std::uint32_t level = 0; level < levels_; ++level, index /= fan_out) {
      Node& node = nodes_[first_[level] + index / fan_out];
      count += get(level, index);
      const auto i = static_cast<std::int32_t>(index % fan_out);
      const Lanes place = {i, i, i, i};
      // A comparison is -1 where it holds.
      node.before[0] += place < Lanes{0, 1, 2, 3};
      node.before[1] += place < Lanes{4, 5, 6, 7};
      node.before[2] += place < Lanes{8, 9, 10, 11};
      node.before[3] += place < Lanes{12, 13, 14, 15};
    }
    return count;
  }

  // What is in the tree for the time to come counts for nothing: it is set when time comes there.
  void set_next() {
    words_[next_ / 64] |= std::uint64_t{1} << next_ % 64;
    if (++next_ % 64 == 0) enter_word(next_ / 64);
  }

  static std::uint32_t bits(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::popcount(word));
  }

  void enter_word(std::uint32_t word);
  void compact();
  void make_tree();

  std::vector<std::uint32_t> slot_of_;  // by page
  std::vector<std::uint32_t> page_of_;  // by slot
  std::vector<std::uint64_t> words_;
  std::vector<Node> nodes_;  // level by level, that of words first
  std::uint32_t first_[levels_max] = {};
  std::uint32_t levels_ = 0;
  std::uint32_t slots_ = 0;
  std::uint32_t next_ = 0;  // slot of the next reference
  std::uint32_t live_ = 0;
};

}  // namespace perdure::sim
