// SPDX-License-Identifier: BSD-3-Clause
//
// 2Q, full version (Johnson and Shasha, VLDB 1994): pages that are new queue in A1in, whose victims
// are remembered in A1out; a page that faults while it is remembered goes to Am, which is LRU.
#include <algorithm>

#include "sim/frame_choice.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class TwoQ {
 public:
  explicit TwoQ(const PolicySetup& setup) : memory_(setup.memory), choice_(setup) {
    const auto frames = static_cast<double>(memory_.frames());
    in_pages_ = static_cast<std::uint64_t>(std::max(1.0, frames * setup.options.number("in")));
    out_pages_ = static_cast<std::uint64_t>(std::max(1.0, frames * setup.options.number("out")));
  }

  void grow(std::uint32_t pages) {
    lists_.grow(pages);
    list_of_.resize(pages, lists);
  }

  void hit(PageId page) {
    if (list_of_[page] == am) lists_.to_front(am, page);
  }

  Place miss(PageId page) {
    const bool remembered = list_of_[page] == a1_out;
    if (remembered) lists_.remove(a1_out, page);
    const Place place = choice_.any(memory_) ? choice_.free(memory_) : make_room();
    put(remembered ? am : a1_in, page);
    return place;
  }

 private:
  enum List : std::uint8_t { a1_in, a1_out, am, lists };

  void put(List list, PageId page) {
    lists_.push_front(list, page);
    list_of_[page] = list;
  }

  Place make_room() {
    if (lists_.size(a1_in) <= in_pages_ && !lists_.empty(am)) {
      const PageId page = lists_.pop_back(am);
      list_of_[page] = lists;
      return memory_.evict(page);
    }
    const PageId page = lists_.pop_back(a1_in);
    put(a1_out, page);
    if (lists_.size(a1_out) > out_pages_) list_of_[lists_.pop_back(a1_out)] = lists;
    return memory_.evict(page);
  }

  Memory& memory_;
  FrameChoice choice_;
  std::uint64_t in_pages_ = 0;
  std::uint64_t out_pages_ = 0;
  PageLists<lists> lists_;
  std::vector<std::uint8_t> list_of_;
};

}  // namespace

PolicyEntry two_q_policy() {
  return policy_entry<TwoQ>({
      .name = "two_q",
      .description = "2Q, full version, over both memories",
      .options = {fill_option(),
                  {.name = "in",
                   .default_value = "0.25",
                   .description = "share of the frames for pages that are new (Kin)",
                   .least = 0,
                   .most = 1},
                  {.name = "out",
                   .default_value = "0.5",
                   .description = "pages remembered, as a share of the frames (Kout)",
                   .least = 0,
                   .most = 100}},
  });
}

}  // namespace perdure::sim
