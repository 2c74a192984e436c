// StackDistance: at which depth of the LRU stack a page stands when it is referenced again.
//
// Each reference takes the next slot of time; a bit says whether the slot is a page's last one. The
// depth is the number of bits set behind the page's slot, and itself. Bits are counted by word and
// by a Fenwick tree over blocks of 512, so that the tree stays in the first-level cache: O(log P).
// When slots run out, those in use are moved together.
// Threads: one. Failure: none. Memory: at most 16.2 bytes for each page.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace perdure::sim {

class StackDistance {
 public:
  static constexpr std::uint32_t cold = 0;

  StackDistance();
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
      depth = live_ - count_before(slot);
      clear(slot);
    } else {
      ++live_;
    }
    page_of_[next_] = page;
    set_next();
    slot_of_[page] = next_++;
    return depth;
  }

  // `page` will be referenced soon.
  void prefetch(std::uint32_t page) const { __builtin_prefetch(&slot_of_[page], 1); }

  std::uint32_t pages() const { return live_; }

  // Calls visit(page, depth) for every page on the stack, from the bottom, which is deepest.
  template <typename Visit>
  void visit(Visit visit) const {
    std::uint32_t depth = live_;
    for (std::uint32_t slot = 0; slot < next_; ++slot) {
      if ((words_[slot / 64] >> slot % 64 & 1U) != 0) visit(page_of_[slot], depth--);
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t block_slots = 512;

  // Bits set in slots before `slot`.
  std::uint32_t count_before(std::uint32_t slot) const {
    // All words of the block are counted, under masks: a loop to `word` would be mispredicted.
    static constexpr std::uint64_t all = ~std::uint64_t{0};
    static constexpr std::uint64_t masks[16] = {all, all, all, all, all, all, all, all};
    const std::uint32_t block = slot / block_slots, word = slot / 64;
    const std::uint64_t* words = &words_[block * std::size_t{block_slots / 64}];
    const std::uint64_t* mask = masks + 8 - word % 8;
    std::uint32_t count = 0;
    for (std::uint32_t i = block; i != 0; i &= i - 1) count += tree_[i];
    for (std::uint32_t i = 0; i < 8; ++i) count += bits(words[i] & mask[i]);
    return count + bits(words_[word] & ((std::uint64_t{1} << slot % 64) - 1));
  }

  // The block that time is in is not in the tree yet: most references would change it.
  void clear(std::uint32_t slot) {
    words_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
    const std::uint32_t block = slot / block_slots;
    if (block == next_ / block_slots) return;
    for (std::uint32_t i = block + 1; i < tree_.size(); i += i & (0U - i)) --tree_[i];
  }

  void set_next() {
    words_[next_ / 64] |= std::uint64_t{1} << next_ % 64;
    if ((next_ + 1) % block_slots == 0) add_block(next_ / block_slots);
  }

  static std::uint32_t bits(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::popcount(word));
  }

  void add_block(std::uint32_t block);
  void compact();

  std::vector<std::uint32_t> slot_of_;  // by page
  std::vector<std::uint32_t> page_of_;  // by slot
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> tree_;  // Fenwick, from 1, over blocks
  std::uint32_t slots_ = 0;
  std::uint32_t next_ = 0;  // slot of the next reference
  std::uint32_t live_ = 0;
};

}  // namespace perdure::sim
