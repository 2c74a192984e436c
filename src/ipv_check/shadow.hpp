// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow: an object or a pair under the checker, with the rules that a program can break.
//
// It lies in two places: an object at its address and in the checker's old copy, a pair in its two
// arrays. `other` is the second of them.
//
// Threads: one at a time. Failure: what breaks a rule is put into `found`, no call fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipv_check/row_box.hpp"
#include "ipv_check/sites.hpp"

namespace perdure::ipv_check {

enum class Rule {
  stale_read,          // a load from new, where old holds the current value
  wrong_version_read,  // a load from old, where new holds it
  row_not_stored,      // R1: row_end, and not all of the row was stored to
  read_outside_row,    // R3: in a nest
  store_outside_row,   // R3: in a nest
  store_to_committed,  // a store to old, or to the array of a pair that the last version is in
  row_not_begun,       // row_end without row_begin
  row_not_ended,       // nest_end or the persistence point within a row
  nest_not_ended,      // R4: the persistence point within a nest
  store_after_flush,   // to what perdure_flush_async() was promised not to be
  stale_commit,        // bytes of the new version that are not current
  not_overwritten,     // of a pair: what an earlier iteration stored to, at the persistence point
  read_before_store,   // of a pair: the same, read in the array that is overwritten
  unequal_walls,       // of a pair: read, stored to by no iteration, and not the same in both
};
const char* rule_name(Rule rule);
const char* rule_text(Rule rule);  // what broke it

constexpr std::uint32_t never = 0xffffffff;  // an iteration: the program has not stored to it

// What memory holds that the program must not read: as doubles, no number.
constexpr int never_stored = 0xff;

struct Breach {
  Rule rule = Rule::stale_read;
  std::size_t offset = 0;              // of the first byte
  std::uint64_t bytes = 0;             // concerned
  std::uint32_t held = 0;              // the iteration whose value is there; 0: the initial one
  std::uint32_t current = 0;           // the one whose value should be
  SiteNumber stored_at = 0;            // and where
  std::optional<SiteNumber> row = {};  // where the row began
  std::optional<bool> other = {};      // of a pair: whether it is the second array
};

class Shadow {
 public:
  struct Counts {
    std::uint64_t versions = 0;  // in which it had changed
    std::uint64_t rows = 0;
    std::uint64_t fresh_row_bytes = 0;
    std::uint64_t copied_bytes = 0;
    std::uint64_t swaps = 0;
    std::uint64_t unannounced = 0;  // stores that made the rest be copied
  };
  using Breaches = std::vector<Breach>;

  virtual ~Shadow() = default;
  const std::string& name() const { return name_; }
  std::size_t bytes() const { return bytes_; }
  const Counts& counts() const { return counts_; }
  virtual std::uintptr_t begin(bool other) const = 0;

  // The first iteration begins.
  virtual void start() {}
  virtual void load(bool other, std::size_t offset, std::size_t bytes, Breaches& found) = 0;
  virtual void store(bool other, std::size_t offset, std::size_t bytes, SiteNumber site,
                     std::uint32_t iteration, Breaches& found) = 0;
  // The iteration ends. `commits`: a version is made.
  virtual void persist(bool commits, Breaches& found) = 0;
  // The iteration that runs is the last, and no version is made of it.
  virtual void leave(Breaches& /*found*/) {}

  // The difference that loads of the box add to their addresses; nothing: there is no box.
  virtual std::optional<std::ptrdiff_t> row_begin(const RowBox& /*box*/, SiteNumber /*site*/) {
    return std::nullopt;
  }
  virtual void row_end(const RowBox& /*box*/, Breaches& /*found*/) {}
  virtual void nest_end(Breaches& /*found*/) {}
  virtual void plain() {}
  virtual void flush_promised(std::size_t /*offset*/, std::size_t /*bytes*/) {}

 protected:
  Shadow(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {}
  Counts counts_;

 private:
  std::string name_;
  std::size_t bytes_;
};

}  // namespace perdure::ipv_check
