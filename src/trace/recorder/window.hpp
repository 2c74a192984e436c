// Window: accesses of the memory by one thread, gathered until they touch more than k pages.
//
// Between the first and the last reference to a page in a window lie fewer than k others, so that
// those in the middle may be dropped as in reducer.hpp, exactly for k page frames and more: a page
// gives at most two records, of its first reference, with the counts of all in the middle, and of
// its last. This costs a few nanoseconds for each access where the reducer, behind it, costs tens.
//
// Invariants: counts in = counts out; records come out in the order of what they stand for. With
// k = 0 nothing is dropped, and records come out one for each access. Threads: one at a time.
// Failure: none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace perdure::trace {

class Window {
 public:
  explicit Window(std::uint32_t floor_pages)
      : pages_max_(std::min(floor_pages, pages_most)),
        shift_(64U - static_cast<unsigned>(std::bit_width(std::max(pages_max_, 1U) * 4U))),
        slots_(pages_max_ == 0 ? 0 : std::size_t{1} << (64U - shift_)) {
    used_.reserve(pages_max_);
    plain_.reserve(pages_max_ == 0 ? plain_most : 0);
  }

  // False, and nothing done, where it is full.
  bool add(std::uint64_t page, bool is_write) {
    if (pages_max_ == 0) return add_plain(page, is_write);
    std::size_t place = (page * 0x9e3779b97f4a7c15U) >> shift_;
    while (slots_[place].round == round_ && slots_[place].page != page) {
      place = (place + 1) & (slots_.size() - 1);
    }
    Slot& slot = slots_[place];
    if (slot.round != round_) [[unlikely]] {
      if (used_.size() == pages_max_ || time_ >= time_most) return false;
      slot = {page, {0, 0}, time_, 0, round_, false};
      used_.push_back(static_cast<std::uint32_t>(place));
    }
    ++slot.counts[is_write ? 1 : 0];
    slot.last_time = time_++;
    slot.last_is_write = is_write;
    return true;
  }

  // Hands over what is in it, consume(page, reads, writes), and is empty.
  template <typename Consume>
  void flush(Consume consume) {
    for (const std::uint64_t entry : plain_) consume(entry >> 1U, 1 - (entry & 1U), entry & 1U);
    plain_.clear();
    find_lasts();
    auto last = lasts_.begin();
    for (const std::uint32_t place : used_) {
      const Slot& slot = slots_[place];
      for (; last != lasts_.end() && (*last >> 32U) < slot.first_time; ++last) give(*last, consume);
      const std::uint32_t again = slot.last_time != slot.first_time ? 1 : 0;
      consume(slot.page, slot.counts[0] - (slot.last_is_write ? 0 : again),
              slot.counts[1] - (slot.last_is_write ? again : 0));
    }
    for (; last != lasts_.end(); ++last) give(*last, consume);
    used_.clear();
    time_ = 0;
    ++round_;
  }

 private:
  static constexpr std::uint32_t pages_most = 512;  // more would not fit the processor's own cache
  static constexpr std::uint32_t time_most = 1U << 30U;
  static constexpr std::size_t plain_most = 16384;

  struct Slot {
    std::uint64_t page = 0;
    std::uint32_t counts[2] = {0, 0};  // reads, writes
    std::uint32_t first_time = 0;
    std::uint32_t last_time = 0;
    std::uint32_t round = 0;  // it is empty in all others
    bool last_is_write = false;
  };

  bool add_plain(std::uint64_t page, bool is_write) {
    if (plain_.size() == plain_most) return false;
    plain_.push_back(page << 1U | (is_write ? 1U : 0U));
    return true;
  }

  // Of pages with a second reference: time and slot, in the order of time.
  void find_lasts() {
    lasts_.clear();
    for (const std::uint32_t place : used_) {
      const Slot& slot = slots_[place];
      if (slot.last_time != slot.first_time) {
        lasts_.push_back(std::uint64_t{slot.last_time} << 32U | place);
      }
    }
    std::sort(lasts_.begin(), lasts_.end());
  }

  template <typename Consume>
  void give(std::uint64_t last, Consume& consume) const {
    const Slot& slot = slots_[static_cast<std::uint32_t>(last)];
    consume(slot.page, slot.last_is_write ? 0U : 1U, slot.last_is_write ? 1U : 0U);
  }

  std::uint32_t pages_max_;
  unsigned shift_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> used_;  // in the order of their first references
  std::vector<std::uint64_t> lasts_;
  std::vector<std::uint64_t> plain_;
  std::uint32_t round_ = 1;
  std::uint32_t time_ = 0;
};

}  // namespace perdure::trace
