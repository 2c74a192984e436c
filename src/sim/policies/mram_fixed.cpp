// SPDX-License-Identifier: BSD-3-Clause
//
// MRAM-fixed (paging paper, section 3.1): the hottest pages of the whole run are pinned in MRAM,
// and the others share DRAM under LRU.
#include <algorithm>

#include "sim/hot_pages.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class MramFixed {
 public:
  explicit MramFixed(const PolicySetup& setup) : memory_(setup.memory), is_hot_(hot_pages(setup)) {}

  static Status check(const PolicySetup& setup) {
    PERDURE_TRY(check_rank(rank_of(setup), *setup.devices));
    const std::uint64_t frames = setup.memory.frames(Place::dram);
    std::uint64_t pages = 0;
    for (const auto& count : setup.counts) pages += count.reads + count.writes != 0 ? 1U : 0U;
    const std::uint64_t cold = pages - std::min(pages, setup.memory.frames(Place::mram));
    if (cold == 0 || frames >= std::max<std::uint64_t>(setup.floor_pages, 1)) {
      return Status::success();
    }
    return Status(Code::invalid_argument, "MRAM-fixed with ", frames,
                  " page frames of DRAM: ", cold, " pages are not pinned and need ",
                  std::max<std::uint64_t>(setup.floor_pages, 1),
                  " or more, as the trace's reduction is exact from there");
  }

  void grow(std::uint32_t pages) { lists_.grow(pages); }

  void hit(PageId page) {
    if (!is_hot_[page]) lists_.to_front(stack, page);
  }

  Place miss(PageId page) {
    if (is_hot_[page]) return Place::mram;  // there are as many hot pages as frames at most
    if (memory_.free(Place::dram) == 0) return memory_.evict(lists_.replace_back(stack, page));
    lists_.push_front(stack, page);
    return Place::dram;
  }

 private:
  enum List : std::uint32_t { stack, lists };

  Memory& memory_;
  std::vector<bool> is_hot_;
  PageLists<lists> lists_;
};

}  // namespace

PolicyEntry mram_fixed_policy() {
  return policy_entry<MramFixed>({
      .name = "mram_fixed",
      .description = "the hottest pages are pinned in MRAM, the others share DRAM under LRU",
      .options = {rank_option()},
      .needs_counts = true,
      .exact_when_reduced = true,
  });
}

}  // namespace perdure::sim
