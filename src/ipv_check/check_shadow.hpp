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
// Threads, failure: as Shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipv_check/byte_masks.hpp"
#include "ipv_check/shadow.hpp"

namespace perdure::ipv_check {

class CheckShadow final : public Shadow {
 public:
  // The object is in use by the program and holds what it holds. Throws std::bad_alloc.
  CheckShadow(std::string name, std::byte* begin, std::size_t bytes);

  std::uintptr_t begin(bool old) const override {
    return reinterpret_cast<std::uintptr_t>(old ? old_.get() : new_);
  }
  void load(bool from_old, std::size_t offset, std::size_t bytes, Breaches& found) override;
  void store(bool to_old, std::size_t offset, std::size_t bytes, SiteNumber site,
             std::uint32_t iteration, Breaches& found) override;
  std::optional<std::ptrdiff_t> row_begin(const RowBox& box, SiteNumber site) override;
  void row_end(const RowBox& box, Breaches& found) override;
  void nest_end(Breaches& found) override { close(found); }
  void plain() override;
  void flush_promised(std::size_t offset, std::size_t bytes) override;
  void persist(bool commits, Breaches& found) override;
  void leave(Breaches& found) override { persist(false, found); }

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

  std::byte* new_;
  std::unique_ptr<std::byte, Free> old_;
  std::vector<Word> words_;
  bool swapped_ = false;  // stored to since the version before
  bool in_nest_ = false;
  std::size_t covered_begin_ = 0;  // copied or announced since then
  std::size_t covered_end_ = 0;
  std::vector<OpenRow> rows_;
  bool promised_ = false;  // some byte is `flushed`
};

}  // namespace perdure::ipv_check
