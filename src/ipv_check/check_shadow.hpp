// SPDX-License-Identifier: BSD-3-Clause
//
// CheckShadow: one object under the checker, with both of its copies.
//
// It does what the runtime of in-place versioning does in tier stream, by copying instead of
// by trading pages, and keeps for each byte which of the two copies holds its current value. The
// copy at the object's address is called new, the other one old.
//
//   first store of an iteration   contents of new and old change places
//   row                           what lies between it and the covered interval is copied from old
//                                 to new; if it does not touch the interval, its loads go to old
//   nest_end, an unannounced store                    all outside of the interval is copied
//
// Nothing is made good: a program that breaks a rule reads what it would read in earnest.
//
// Invariant: in what is covered, and before the first store, new holds the current values, unless
// a rule was broken.
//
// Threads: one at a time. Failure: what breaks a rule is reported to the Listener, no call fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipv_check/byte_masks.hpp"
#include "ipv_check/row_box.hpp"
#include "ipv_check/sites.hpp"

namespace perdure::ipv_check {

enum class Rule {
  stale_read,          // a load from new, where old holds the current value
  wrong_version_read,  // a load from old, where new holds it
  row_not_stored,      // R1: row_end, and not all of the row was stored to
  read_outside_row,    // R3: in a nest
  store_outside_row,   // R3: in a nest
  store_to_committed,  // a store to old
  row_not_begun,       // row_end without row_begin
  row_not_ended,       // nest_end or the persistence point within a row
  nest_not_ended,      // R4: the persistence point within a nest
  store_after_flush,   // to what perdure_flush_async() was promised not to be
  stale_commit,        // bytes of the new version that are not current
};
const char* rule_name(Rule rule);
const char* rule_text(Rule rule);  // what broke it

constexpr std::uint32_t never = 0xffffffff;  // an iteration: the program has not stored to it

struct Breach {
  Rule rule = Rule::stale_read;
  std::size_t offset = 0;              // of the first byte
  std::uint64_t bytes = 0;             // concerned
  std::uint32_t held = 0;              // the iteration whose value is there; 0: the initial one
  std::uint32_t current = 0;           // the one whose value should be
  SiteNumber stored_at = 0;            // and where
  std::optional<SiteNumber> row = {};  // where the row began
};

class CheckShadow {
 public:
  struct Counts {
    std::uint64_t versions = 0;  // in which it had changed
    std::uint64_t rows = 0;
    std::uint64_t fresh_row_bytes = 0;
    std::uint64_t copied_bytes = 0;
    std::uint64_t swaps = 0;
    std::uint64_t unannounced = 0;  // stores that made the rest be copied
  };

  // The object is in use by the program and holds what it holds. Throws std::bad_alloc.
  CheckShadow(std::string name, std::byte* begin, std::size_t bytes);

  const std::string& name() const { return name_; }
  std::uintptr_t new_begin() const { return reinterpret_cast<std::uintptr_t>(new_); }
  std::uintptr_t old_begin() const { return reinterpret_cast<std::uintptr_t>(old_.get()); }
  std::size_t bytes() const { return bytes_; }
  const Counts& counts() const { return counts_; }

  // Each of these reports what it found by use(Breach); `at` is the iteration that runs.
  using Breaches = std::vector<Breach>;

  void load(bool from_old, std::size_t offset, std::size_t bytes, Breaches& found);
  void store(bool to_old, std::size_t offset, std::size_t bytes, SiteNumber site,
             std::uint32_t iteration, Breaches& found);

  // The difference that loads of the box add to their addresses.
  std::ptrdiff_t row_begin(const RowBox& box, SiteNumber site);
  void row_end(const RowBox& box, Breaches& found);
  void nest_end(Breaches& found) { close(found); }
  void plain();
  void flush_promised(std::size_t offset, std::size_t bytes);

  // `commits`: a version is made.
  void persist(bool commits, Breaches& found);

 private:
  struct Word {
    std::uint32_t new_iteration = 0;  // of the newest store whose value the copy holds
    std::uint32_t old_iteration = never;
    SiteNumber stored_at = 0;
    ByteMask in_new = 0;  // bytes whose current value the copy holds
    ByteMask in_old = 0;
    ByteMask in_row = 0;   // stored to since the row began
    ByteMask flushed = 0;  // promised not to be stored to
  };
  static_assert(sizeof(Word) == 16);

  struct OpenRow {
    RowBox box;
    SiteNumber site = 0;
  };

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  void swap_copies();
  void first_store();
  void cover(std::size_t begin, std::size_t end);
  void copy_to_new(std::size_t begin, std::size_t end);
  bool in_open_row(std::size_t begin, std::size_t end) const;
  bool is_covered(std::size_t begin, std::size_t end) const {
    return begin >= covered_begin_ && end <= covered_end_;
  }
  void close(Breaches& found);

  std::string name_;
  std::byte* new_;
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> old_;
  std::vector<Word> words_;
  bool swapped_ = false;  // stored to since the version before
  bool in_nest_ = false;
  std::size_t covered_begin_ = 0;  // copied or announced since then
  std::size_t covered_end_ = 0;
  std::vector<OpenRow> rows_;
  bool promised_ = false;  // some byte is `flushed`
  Counts counts_;
};

}  // namespace perdure::ipv_check
