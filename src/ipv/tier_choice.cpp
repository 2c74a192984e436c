#include "ipv/tier_choice.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure {
namespace {

std::uint64_t median(std::vector<std::uint64_t> costs) {
  if (costs.empty()) return 0;
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case PERDURE_IPV_AUTO:
      return "auto";
    case PERDURE_IPV_VERSION:
      return "version";
    case PERDURE_IPV_STREAM:
      return "stream";
    case PERDURE_IPV_SWAP:
      return "swap";
    case PERDURE_IPV_COPY:
      return "copy";
    case PERDURE_IPV_FUSED:
      return "fused";
  }
  return "unknown";
}

TierChoice::TierChoice(std::vector<Tier> possible)
    : possible_(std::move(possible)), costs_(possible_.size()) {
  PERDURE_ASSERT(!possible_.empty());
}

Tier TierChoice::next() {
  if (possible_.size() == 1) return possible_.front();
  while (!decided()) {
    const std::size_t at = tried_++ % possible_.size();
    if (tried_ <= possible_.size() || worth_a_trial(at)) return possible_[at];
  }
  if (++kept_ > kept_epochs) {
    kept_ = 0;
    tried_ = 0;
    for (auto& costs : costs_) costs.clear();
    return possible_[tried_++];
  }
  return possible_[best()];
}

void TierChoice::record(Tier tier, std::uint64_t cost_ns) {
  const auto at = std::find(possible_.begin(), possible_.end(), tier) - possible_.begin();
  auto& costs = costs_[static_cast<std::size_t>(at)];
  if (costs.size() < trials) costs.push_back(cost_ns);
}

std::vector<std::uint64_t> TierChoice::medians() const {
  std::vector<std::uint64_t> all;
  for (const auto& costs : costs_) all.push_back(median(costs));
  return all;
}

// Its least cost decides, as what disturbs the machine only adds. Also if there is none.
bool TierChoice::worth_a_trial(std::size_t at) const {
  const auto least = std::min_element(costs_[at].begin(), costs_[at].end());
  return least == costs_[at].end() || *least * 2 <= median(costs_[best()]) * 3;
}

// One that was tried: the last trial's cost may still be under way.
std::size_t TierChoice::best() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < costs_.size(); ++i) {
    if (costs_[i].empty()) continue;
    if (costs_[best].empty() || median(costs_[i]) < median(costs_[best])) best = i;
  }
  return best;
}

}  // namespace perdure
