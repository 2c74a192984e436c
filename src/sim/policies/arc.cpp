// SPDX-License-Identifier: BSD-3-Clause
//
// ARC (Megiddo and Modha, FAST 2003, figure 4): T1 holds pages seen once lately, T2 pages seen
// twice; B1 and B2 remember the victims of each, and move the target size p of T1.
#include <algorithm>

#include "sim/frame_choice.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class Arc {
 public:
  explicit Arc(const PolicySetup& setup)
      : memory_(setup.memory), choice_(setup), frames_(setup.memory.frames()) {}

  void grow(std::uint32_t pages) {
    lists_.grow(pages);
    list_of_.resize(pages, lists);
  }

  void hit(PageId page) {  // case I
    lists_.remove(list_of_[page], page);
    put(t2, page);
  }

  Place miss(PageId page) {
    const auto list = static_cast<List>(list_of_[page]);
    if (list == b1 || list == b2) {  // cases II and III
      adapt(list);
      lists_.remove(list, page);
      const Place place = replace(list == b2);
      put(t2, page);
      return place;
    }
    const Place place = make_room();  // case IV
    put(t1, page);
    return place;
  }

 private:
  enum List : std::uint8_t { t1, t2, b1, b2, lists };

  void put(List list, PageId page) {
    lists_.push_front(list, page);
    list_of_[page] = list;
  }
  void forget(List list) { list_of_[lists_.pop_back(list)] = lists; }

  // Before the page leaves its list.
  void adapt(List list) {
    const std::uint64_t ones = lists_.size(b1), twos = lists_.size(b2);
    if (list == b1) {
      target_ = std::min(frames_, target_ + std::max<std::uint64_t>(1, twos / ones));
    } else {
      target_ -= std::min(target_, std::max<std::uint64_t>(1, ones / twos));
    }
  }

  Place replace(bool was_in_b2) {
    const std::uint64_t ones = lists_.size(t1);
    const bool from_t1 = ones != 0 && (ones > target_ || (was_in_b2 && ones == target_));
    const PageId page = lists_.pop_back(from_t1 ? t1 : t2);
    put(from_t1 ? b1 : b2, page);
    return memory_.evict(page);
  }

  Place make_room() {
    const std::uint64_t once = lists_.size(t1) + lists_.size(b1);
    const std::uint64_t all = once + lists_.size(t2) + lists_.size(b2);
    if (once == frames_ && lists_.size(t1) == frames_) {
      const PageId page = lists_.pop_back(t1);
      list_of_[page] = lists;
      return memory_.evict(page);
    }
    if (once == frames_) {
      forget(b1);
    } else if (all >= 2 * frames_) {
      forget(b2);
    }
    return choice_.any(memory_) ? choice_.free(memory_) : replace(false);
  }

  Memory& memory_;
  FrameChoice choice_;
  std::uint64_t frames_;
  std::uint64_t target_ = 0;  // p
  PageLists<lists> lists_;
  std::vector<std::uint8_t> list_of_;
};

}  // namespace

PolicyEntry arc_policy() {
  return policy_entry<Arc>({
      .name = "arc",
      .description = "adaptive replacement cache, over both memories",
      .options = {fill_option()},
  });
}

}  // namespace perdure::sim
