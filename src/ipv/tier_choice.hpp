// Tier choice: which tier an object in tier AUTO uses in its next epoch. Each possible one is used
// once, those that cost up to 1.5 times the least a few times in turn, so that what disturbs
// the machine meets all; then the one whose epochs cost least (median) is kept, and rarely all are
// tried again. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/perdure_ipv.h"

namespace perdure {

using Tier = perdure_ipv_tier;
const char* tier_name(Tier tier);

class TierChoice {
 public:
  static constexpr unsigned trials = 3;         // epochs of each tier, at most
  static constexpr unsigned kept_epochs = 500;  // until they are tried again

  explicit TierChoice(std::vector<Tier> possible);

  // For the next epoch; called once for each.
  Tier next();
  // What an epoch in `tier` cost.
  void record(Tier tier, std::uint64_t cost_ns);
  // Median cost of the tiers tried, in the order of `possible`; 0: not tried.
  std::vector<std::uint64_t> medians() const;
  const std::vector<Tier>& possible() const { return possible_; }
  bool decided() const { return tried_ >= trials * possible_.size(); }

 private:
  std::size_t best() const;
  bool worth_a_trial(std::size_t at) const;

  std::vector<Tier> possible_;
  std::vector<std::vector<std::uint64_t>> costs_;
  std::uint64_t tried_ = 0;  // epochs of trial handed out
  std::uint64_t kept_ = 0;
};

}  // namespace perdure
