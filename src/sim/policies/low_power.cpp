// SPDX-License-Identifier: BSD-3-Clause
//
// The low-power algorithm of the paging paper, section 3.1: MRAM-fixed as long as enough accesses
// go to MRAM, LRU over both memories while they don't.
//
//   threshold = alpha · MRAM / (MRAM + DRAM); MRAM hit rate = accesses to MRAM / all, from the
//   start
//
// The paper's flow chart is not to be had, so these are choices, each with its option:
//   when it is looked at   at each fault that needs a victim, by the accesses before it, and not
//                          before `warm_up` accesses; until then pages are pinned
//   unpin=each_fault       the mode is chosen anew at each such fault
//   unpin=once             what was unpinned stays so
//   age=kept               un-pinned pages keep their place in the order of LRU
//   age=oldest             they leave before all others
//   repin=fault            when pages are pinned again, hot pages come back to MRAM as they fault
//   repin=migrate          hot pages in DRAM change places with others in MRAM at once; each such
//                          move costs the lines of a page, read there and written here
#include <algorithm>

#include "sim/hot_pages.hpp"
#include "sim/page_lists.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class LowPower {
 public:
  static constexpr bool looks_at_counters = true;

  explicit LowPower(const PolicySetup& setup)
      : memory_(setup.memory),
        is_hot_(hot_pages(setup)),
        threshold_(setup.options.number("alpha") *
                   static_cast<double>(memory_.frames(Place::mram)) /
                   static_cast<double>(memory_.frames())),
        warm_up_(static_cast<std::uint64_t>(setup.options.number("warm_up"))),
        once_(setup.options.is("unpin", "once")),
        oldest_(setup.options.is("age", "oldest")),
        migrates_(setup.options.is("repin", "migrate")) {}

  static Status check(const PolicySetup& setup) {
    return check_rank(rank_of(setup), *setup.devices);
  }

  void grow(std::uint32_t pages) {
    lists_.grow(pages);
    last_use_.resize(pages, 0);
  }

  void hit(PageId page) {
    last_use_[page] = ++now_;
    lists_.to_front(list_of(page, memory_.place(page)), page);
  }

  Place miss(PageId page) {
    last_use_[page] = ++now_;
    const Place place = find_frame(page);
    lists_.push_front(list_of(page, place), page);
    return place;
  }

 private:
  // Hot pages in MRAM, which pinning protects; others that got there while nothing was pinned.
  enum List : std::uint32_t { pinned, guests, dram, lists };

  List list_of(PageId page, Place place) const {
    if (place == Place::dram) return dram;
    return is_hot_[page] ? pinned : guests;
  }

  Place find_frame(PageId page) {
    const bool hot = is_hot_[page];
    const bool free_mram = memory_.free(Place::mram) != 0,
               free_dram = memory_.free(Place::dram) != 0;
    // While nothing has to leave, the mode does not matter: MRAM is kept for hot pages.
    if (hot && free_mram) return Place::mram;
    if (!hot && free_dram) return Place::dram;
    if (choose_mode()) {
      if (hot && !lists_.empty(guests)) return evict_from(guests);
      if (hot && free_dram) return Place::dram;
      if (!lists_.empty(guests) || !lists_.empty(dram)) return evict_from(older_of(guests, dram));
    }
    if (free_mram) return Place::mram;
    if (free_dram) return Place::dram;
    if (oldest_ && !lists_.empty(pinned)) return evict_from(pinned);
    return evict_from(older_of(pinned, older_of(guests, dram)));
  }

  // Whether pages are pinned now.
  bool choose_mode() {
    const Counters counters = memory_.counters();
    const std::uint64_t all = counters.accesses();
    const PlaceCounters& mram = counters[Place::mram];
    const auto rate = static_cast<double>(mram.reads + mram.writes) / static_cast<double>(all);
    const bool before = pins_;
    pins_ = all == 0 || all < warm_up_ || (rate >= threshold_ && !(once_ && was_unpinned_));
    was_unpinned_ |= !pins_;
    if (migrates_ && pins_ && !before) migrate();
    return pins_;
  }

  List older_of(List one, List other) const {
    if (lists_.empty(one)) return other;
    if (lists_.empty(other)) return one;
    return last_use_[lists_.back(one)] < last_use_[lists_.back(other)] ? one : other;
  }

  Place evict_from(List list) { return memory_.evict(lists_.pop_back(list)); }

  void migrate() {
    std::vector<PageId> hot;
    for (PageId page = 0; page < last_use_.size(); ++page) {
      if (is_hot_[page] && memory_.resident(page) && memory_.place(page) == Place::dram) {
        hot.push_back(page);
      }
    }
    for (const PageId page : hot) {
      if (memory_.free(Place::mram) != 0) {
        memory_.move(page, Place::mram);
      } else if (!lists_.empty(guests)) {
        const PageId guest = lists_.pop_back(guests);
        memory_.exchange(page, guest);
        arrive(dram, guest);
      } else {
        return;
      }
      lists_.remove(dram, page);
      arrive(pinned, page);
    }
  }

  // To its place in the order of last use.
  void arrive(List list, PageId page) {
    lists_.insert_ordered(list, page,
                          [&](PageId other) { return last_use_[other] < last_use_[page]; });
  }

  Memory& memory_;
  std::vector<bool> is_hot_;
  double threshold_;
  std::uint64_t warm_up_;
  bool once_, oldest_, migrates_;
  bool pins_ = true, was_unpinned_ = false;
  PageLists<lists> lists_;
  std::vector<std::uint64_t> last_use_;
  std::uint64_t now_ = 0;
};

}  // namespace

PolicyEntry low_power_policy() {
  return policy_entry<LowPower>({
      .name = "low_power",
      .description = "MRAM-fixed while the MRAM hit rate is above a threshold, LRU over both below",
      .options = {{.name = "alpha",
                   .default_value = "0.9",
                   .description = "threshold of the MRAM hit rate, times MRAM / (MRAM + DRAM)",
                   .least = 0,
                   .most = 100},
                  {.name = "warm_up",
                   .default_value = "0",
                   .description = "accesses before the hit rate is looked at",
                   .least = 0,
                   .most = 1e18},
                  {.name = "unpin",
                   .default_value = "each_fault",
                   .description = "whether pages are pinned again when the hit rate rises",
                   .choices = {"each_fault", "once"}},
                  {.name = "age",
                   .default_value = "kept",
                   .description = "of pages that are unpinned, in the order of LRU",
                   .choices = {"kept", "oldest"}},
                  {.name = "repin",
                   .default_value = "fault",
                   .description = "how hot pages come back to MRAM",
                   .choices = {"fault", "migrate"}},
                  rank_option()},
      .needs_counts = true,
  });
}

}  // namespace perdure::sim
