// SPDX-License-Identifier: BSD-3-Clause
//
// FIFO: the page that came first leaves first. The template of a policy: see policy.hpp for what
// each function is asked, copy this file, and add its name to the list in src/sim/CMakeLists.txt.
#include "sim/frame_choice.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class Fifo {
 public:
  explicit Fifo(const PolicySetup& setup) : memory_(setup.memory), choice_(setup) {}

  void grow(std::uint32_t pages) { lists_.grow(pages); }

  void hit(PageId /*page*/) {}  // the order does not change

  Place miss(PageId page) {
    const Place place =
        choice_.any(memory_) ? choice_.free(memory_) : memory_.evict(lists_.pop_back(queue));
    lists_.push_front(queue, page);
    return place;
  }

 private:
  enum List : std::uint32_t { queue, lists };

  Memory& memory_;
  FrameChoice choice_;
  PageLists<lists> lists_;
};

}  // namespace

PolicyEntry fifo_policy() {
  return policy_entry<Fifo>({
      .name = "fifo",
      .description = "first in, first out, over both memories",
      .options = {fill_option()},
  });
}

}  // namespace perdure::sim
