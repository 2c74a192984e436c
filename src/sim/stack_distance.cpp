#include "sim/stack_distance.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure::sim {
namespace {

constexpr std::uint32_t slots_min = 4096;

}  // namespace

StackDistance::StackDistance() {
  compact();
}

void StackDistance::add_block(std::uint32_t block) {
  std::uint32_t count = 0;
  for (std::uint32_t word = block * (block_slots / 64); word < (block + 1) * (block_slots / 64);
       ++word) {
    count += bits(words_[word]);
  }
  for (std::uint32_t i = block + 1; i < tree_.size(); i += i & (0U - i)) tree_[i] += count;
}

// Moves the slots in use together, in their order, and makes room for twice as many again.
void StackDistance::compact() {
  std::uint32_t kept = 0;
  visit([&](std::uint32_t page, std::uint32_t) {
    page_of_[kept] = page;
    slot_of_[page] = kept++;
  });
  PERDURE_ASSERT(kept == live_);
  const std::uint64_t wanted = (std::uint64_t{live_} * 3 / block_slots + 1) * block_slots;
  PERDURE_ASSERT(wanted < none);
  slots_ = std::max({slots_, slots_min, static_cast<std::uint32_t>(wanted)});
  page_of_.resize(slots_);
  words_.assign(slots_ / 64, 0);
  tree_.assign(slots_ / block_slots + 1, 0);
  for (next_ = 0; next_ < kept; ++next_) set_next();
}

}  // namespace perdure::sim
