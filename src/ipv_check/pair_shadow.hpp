// SPDX-License-Identifier: BSD-3-Clause
//
// PairShadow: the two arrays of a pair under the checker, and the contract of pair_object.hpp
// (ipv.R1 and ipv.R2), byte by byte. One array is alive and may be read only, the other one is
// overwritten; they exchange roles at every persistence point.
//
// A byte of the array that is overwritten is stale until the iteration stores to it, if one before
// has; and one of the second array from the beginning, if the first has another value there. What
// is stale holds `never_stored`, which is what a program reads that breaks the contract. A word
// that holds something else is not: code stored there that the checker does not see.
#pragma once

#include "ipv_check/byte_masks.hpp"
#include "ipv_check/shadow.hpp"

namespace perdure::ipv_check {

class PairShadow final : public Shadow {
 public:
  PairShadow(std::string name, std::byte* a, std::byte* b, std::size_t bytes);

  std::byte* alive() const { return arrays_[alive_]; }
  std::uintptr_t begin(bool other) const override {
    return reinterpret_cast<std::uintptr_t>(arrays_[other ? 1 : 0]);
  }
  void start() override;
  void load(bool other, std::size_t offset, std::size_t bytes, Breaches& found) override;
  void store(bool other, std::size_t offset, std::size_t bytes, SiteNumber site,
             std::uint32_t iteration, Breaches& found) override;
  void persist(bool commits, Breaches& found) override;

 private:
  struct Word {
    std::uint32_t iteration = 0;  // of the newest store
    SiteNumber stored_at = 0;
    ByteMask stored = 0;         // by any iteration
    ByteMask stale[2] = {0, 0};  // in each array
  };

  void make_stale(unsigned array, std::size_t word, ByteMask mask);
  ByteMask stale(unsigned array, std::size_t word) const;
  void note(Breaches& found, std::size_t before, Rule rule, unsigned array, std::size_t word,
            ByteMask mask) const;

  std::byte* arrays_[2];
  std::vector<Word> words_;
  unsigned alive_ = 0;
};

}  // namespace perdure::ipv_check
