// SPDX-License-Identifier: BSD-3-Clause
//
// CLOCK, or second chance (Corbató, 1968): a page that was referenced since the hand passed it last
// is spared once. The hand is the end of a queue: who is spared goes to its front.
#include "sim/frame_choice.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class Clock {
 public:
  explicit Clock(const PolicySetup& setup) : memory_(setup.memory), choice_(setup) {}

  void grow(std::uint32_t pages) {
    lists_.grow(pages);
    referenced_.resize(pages, 0);
  }

  void hit(PageId page) { referenced_[page] = 1; }

  Place miss(PageId page) {
    const Place place = choice_.any(memory_) ? choice_.free(memory_) : memory_.evict(victim());
    referenced_[page] = 1;  // the fault is a reference
    lists_.push_front(queue, page);
    return place;
  }

 private:
  enum List : std::uint32_t { queue, lists };

  PageId victim() {
    for (;;) {
      const PageId page = lists_.back(queue);
      if (referenced_[page] == 0) return lists_.pop_back(queue);
      referenced_[page] = 0;
      lists_.to_front(queue, page);
    }
  }

  Memory& memory_;
  FrameChoice choice_;
  PageLists<lists> lists_;
  std::vector<std::uint8_t> referenced_;
};

}  // namespace

PolicyEntry clock_policy() {
  return policy_entry<Clock>({
      .name = "clock",
      .description = "second chance, over both memories",
      .options = {fill_option()},
  });
}

}  // namespace perdure::sim
