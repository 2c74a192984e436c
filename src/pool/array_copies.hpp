// SPDX-License-Identifier: BSD-3-Clause
//
// Array copies: which copies of an array the versions of now name, and which one is worked on.
//
// Invariant
//   pool.A1  A copy that the head or a retained version names is never stored to (flush: there is
//       none). The working copy is the lowest that none of them names: it depends on nothing else,
//       so that it has the same number on all ranks that hold the same versions.
//       (Not so arrays that are marked, to whose copies only their own rank stores. Nor arrays with
//       a writer, which may be unchanged on one rank and changed on another,
//       and whose writer may have begun the version after the one under way (move_on()): they keep
//       their working copy while nothing names it. Nobody but their own rank stores to them.)
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perdure {

class ArrayCopies {
 public:
  // The version in a slot names none, or there is no version in it.
  static constexpr std::uint32_t none = 255;

  explicit ArrayCopies(std::uint32_t slots) : named_(slots, none) {}

  void note_named(std::uint32_t slot, std::uint32_t copy) {
    named_[slot] = static_cast<std::uint8_t>(copy);
  }
  void forget_named() { std::ranges::fill(named_, static_cast<std::uint8_t>(none)); }
  const std::vector<std::uint8_t>& named() const { return named_; }
  // Up to which change of the retained versions that is so (retained.hpp).
  std::uint64_t seen() const { return seen_; }
  void set_seen(std::uint64_t change) { seen_ = change; }

  bool is_named(std::uint32_t copy) const;
  std::uint32_t lowest_unnamed() const;

  std::uint32_t working() const { return working_; }
  // What the version under way names.
  std::uint32_t saved() const { return saved_ == none ? working_ : saved_; }

  // Picks the working copy anew; `consistent` is the head's. If it `stays`, only where it must be
  // another one. There is a free one of `copies`: the slot of the next version names none, so at
  // most copies - 1 are named; and if the head does not name the array, at most copies - 2, and
  // `consistent` is one more.
  void choose_working(std::uint32_t consistent, std::uint32_t copies, bool stays);
  void work_on(std::uint32_t copy);
  // What was saved stays, and another copy, which neither is nor will be named, is the working one.
  // False: of `copies` there is none.
  bool move_on(std::uint32_t consistent, std::uint32_t copies);
  // The version under way is there, or given up.
  void end_version() { saved_ = none; }

 private:
  std::uint64_t named_copies() const;

  std::vector<std::uint8_t> named_;  // by slot
  std::uint64_t seen_ = 0;
  std::uint32_t working_ = 0;
  std::uint32_t saved_ = none;  // of the version under way, after move_on()
};

}  // namespace perdure
