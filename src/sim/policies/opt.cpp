// SPDX-License-Identifier: BSD-3-Clause
//
// OPT (Belady, 1966): the page whose next reference is farthest leaves. No policy has fewer faults;
// it knows the future, so it is a bound. It is no bound for write-backs and energy: to drop clean
// pages first may save more than it costs.
#include <algorithm>
#include <queue>

#include "sim/frame_choice.hpp"
#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

class Opt {
 public:
  explicit Opt(const PolicySetup& setup)
      : memory_(setup.memory), choice_(setup), next_uses_(setup.next_uses) {}

  void grow(std::uint32_t pages) { next_.resize(pages, never); }

  void hit(PageId page) { expect(page); }

  Place miss(PageId page) {
    const Place place = choice_.any(memory_) ? choice_.free(memory_) : memory_.evict(victim());
    expect(page);
    return place;
  }

 private:
  using Expected = std::pair<std::uint64_t, PageId>;

  void expect(PageId page) {
    next_[page] = next_uses_[now_++];
    queue_.emplace(next_[page], page);
    if (queue_.size() > 4 * memory_.frames() + 1024) drop_outdated(page);
  }

  // What was expected before a page's last reference is outdated, and found out here.
  bool is_current(const Expected& expected) const {
    return memory_.resident(expected.second) && next_[expected.second] == expected.first;
  }

  PageId victim() {
    for (;;) {
      const Expected farthest = queue_.top();
      queue_.pop();
      if (is_current(farthest)) return farthest.second;
    }
  }

  // `coming` may not be resident yet.
  void drop_outdated(PageId coming) {
    std::vector<Expected> current;
    for (PageId page = 0; page < next_.size(); ++page) {
      if (page == coming || memory_.resident(page)) current.emplace_back(next_[page], page);
    }
    queue_ = std::priority_queue<Expected>(std::less<Expected>(), std::move(current));
  }

  Memory& memory_;
  FrameChoice choice_;
  std::span<const std::uint64_t> next_uses_;
  std::uint64_t now_ = 0;
  std::vector<std::uint64_t> next_;
  std::priority_queue<Expected> queue_;
};

}  // namespace

PolicyEntry opt_policy() {
  return policy_entry<Opt>({
      .name = "opt",
      .description = "fewest faults possible, over both memories; a bound, as it knows the future",
      .options = {fill_option()},
      .needs_future = true,
      .is_bound = true,
      .exact_when_reduced = true,
  });
}

}  // namespace perdure::sim
