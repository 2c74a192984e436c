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

// Time comes to a word: how many bits stand before it in its node, and, where it is the first one
// of a node, before that in the node above.
void StackDistance::enter_word(std::uint32_t word) {
  if (next_ == slots_) return;
  std::uint32_t count = bits(words_[word - 1]);
  std::uint32_t index = word;
  for (std::uint32_t level = 0; level < levels_; ++level, index /= fan_out) {
    count += get(level, index - 1);
    const bool is_first = index % fan_out == 0;
    set(level, index, is_first ? 0 : count);
    if (!is_first) return;
  }
}

// Moves the slots in use together, in their order, and makes room for twice as many again.
void StackDistance::compact() {
  std::uint32_t kept = 0;
  visit([&](std::uint32_t page, std::uint32_t) {
    page_of_[kept] = page;
    slot_of_[page] = kept++;
  });
  PERDURE_ASSERT(kept == live_);
  const std::uint64_t wanted = (std::uint64_t{live_} * 3 / 64 + 1) * 64;
  PERDURE_ASSERT(wanted < none);
  slots_ = std::max({slots_, slots_min, static_cast<std::uint32_t>(wanted)});
  page_of_.reserve(slots_);  // and no more
  page_of_.resize(slots_);
  words_.assign(slots_ / 64, 0);
  make_tree();
  for (next_ = 0; next_ < kept;) set_next();
}

void StackDistance::make_tree() {
  std::uint32_t size = 0;
  std::uint32_t below = slots_ / 64;
  for (levels_ = 0; below > 1; ++levels_) {
    first_[levels_] = size;
    below = (below + fan_out - 1) / fan_out;
    size += below;
  }
  nodes_.assign(size, {});
}

}  // namespace perdure::sim
