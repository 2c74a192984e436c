// SPDX-License-Identifier: BSD-3-Clause
//
// Simple LRU over both memories (paging paper, section 4.3): one list; a page that comes in gets
// the frame of the page that leaves, whichever memory that is in.
#include "sim/frame_choice.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class Lru {
 public:
  explicit Lru(const PolicySetup& setup) : memory_(setup.memory), choice_(setup) {}

  void grow(std::uint32_t pages) { lists_.grow(pages); }

  void hit(PageId page) { lists_.to_front(stack, page); }

  Place miss(PageId page) {
    if (!choice_.any(memory_)) return memory_.evict(lists_.replace_back(stack, page));
    lists_.push_front(stack, page);
    return choice_.free(memory_);
  }

 private:
  enum List : std::uint32_t { stack, lists };

  Memory& memory_;
  FrameChoice choice_;
  PageLists<lists> lists_;
};

}  // namespace

PolicyEntry lru_policy() {
  return policy_entry<Lru>({
      .name = "lru",
      .description = "simple LRU over both memories",
      .options = {fill_option()},
      .exact_when_reduced = true,
  });
}

}  // namespace perdure::sim
