// SPDX-License-Identifier: BSD-3-Clause
#include "levels/recovery_plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/status.hpp"

namespace perdure {
namespace {

// Where a file of this kind, rank and version is that `fits`.
template <typename Fits>
std::uint32_t place_of_file(const Census& census, SealedKind kind, std::uint32_t rank, VersionId id,
                            const Fits& fits) {
  for (const LevelFileFact& fact : census.levels) {
    if (fact.name.kind == kind && fact.name.rank == rank && fact.id == id && fits(fact)) {
      return fact.at;
    }
  }
  return no_rank;
}

std::uint32_t place_of_image(const Census& census, std::uint32_t rank, VersionId id) {
  return place_of_file(census, SealedKind::image, rank, id, [](const auto&) { return true; });
}

// The files of the group that wrote this guard.
GroupFiles files_of(const Census& census, const LevelFileFact& guard) {
  GroupFiles files;
  files.contents = guard.guard;
  for (const std::uint32_t member : guard.guard.members) {
    files.image_at.push_back(place_of_image(census, member, guard.id));
    files.guard_at.push_back(place_of_file(
        census, SealedKind::guard, member, guard.id,
        [&](const LevelFileFact& fact) { return fact.guard.members == guard.guard.members; }));
  }
  return files;
}

std::optional<RecoveryPlan> plan_for(const Census& census, VersionId id) {
  RecoveryPlan plan{id, {}, std::vector<std::uint32_t>(census.job.ranks, no_rank), {}};
  std::set<std::uint32_t> lost;
  for (std::uint32_t rank = 0; rank < census.job.ranks; ++rank) {
    plan.image_at[rank] = place_of_image(census, rank, id);
    if (plan.image_at[rank] == no_rank) lost.insert(rank);
  }
  for (const LevelFileFact& guard : census.levels) {
    if (lost.empty()) break;
    if (guard.name.kind != SealedKind::guard || guard.id != id) continue;
    GroupRebuild rebuild{files_of(census, guard), {}};
    const auto& members = rebuild.files.contents.members;
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      if (lost.contains(members[i]) && rebuild.files.can_rebuild(i)) rebuild.lost.push_back(i);
    }
    for (const std::uint32_t i : rebuild.lost) lost.erase(members[i]);
    if (!rebuild.lost.empty()) plan.rebuilds.push_back(std::move(rebuild));
  }
  if (!lost.empty()) return std::nullopt;
  return plan;
}

std::string list_of(const std::set<std::uint32_t>& ranks) {
  return ranks.empty() ? "none" : listed(ranks);
}

}  // namespace

bool RecoveryPlan::uses(const LevelFileFact& fact) const {
  if (fact.id != id) return false;
  if (fact.name.kind == SealedKind::image && image_at[fact.name.rank] == fact.at) return true;
  return std::ranges::any_of(rebuilds, [&](const GroupRebuild& rebuild) {
    const auto& members = rebuild.files.contents.members;
    return std::ranges::find(members, fact.name.rank) != members.end();
  });
}

namespace {

// Whether a version of `lineage` is in the history of the one that went on last.
class Counting {
 public:
  explicit Counting(const Census& census) : newest_(census.lineage()) {
    const auto found = std::ranges::find(census.histories, newest_, &History::lineage);
    if (found != census.histories.end()) ancestors_ = found->ancestors;
  }
  bool counts(const JobId& lineage, VersionId id) const {
    if (lineage == newest_) return true;
    const auto found = std::ranges::find(ancestors_, lineage, &Ancestor::lineage);
    return found != ancestors_.end() && id <= found->until;
  }

 private:
  JobId newest_;
  Ancestors ancestors_;
};

}  // namespace

Census counted(const Census& census) {
  Census counts = census;
  const Counting counting(census);
  std::erase_if(counts.levels,
                [&](const LevelFileFact& fact) { return !counting.counts(fact.lineage, fact.id); });
  return counts;
}

std::uint64_t newest_given_up(const Census& census) {
  const Counting counting(census);
  std::uint64_t newest = 0;
  const auto look = [&](const JobId& lineage, VersionId id) {
    if (!counting.counts(lineage, id)) newest = std::max(newest, id.version);
  };
  for (const LevelFileFact& fact : census.levels) look(fact.lineage, fact.id);
  for (const PoolFileFact& file : census.files) look(file.lineage, file.head);
  return newest;
}

std::optional<RecoveryPlan> plan_recovery(const Census& census) {
  const Census counts = counted(census);
  std::set<VersionId> ids;
  for (const LevelFileFact& fact : counts.levels) ids.insert(fact.id);
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    auto plan = plan_for(counts, *id);
    if (!plan) continue;
    plan->lineage = census.lineage();
    return plan;
  }
  return std::nullopt;
}

namespace {

// How many members of each failure group may still be lost; none: some rank has no such group.
std::optional<std::uint32_t> losses_left(const Census& census, VersionId id) {
  std::set<std::uint32_t> covered;
  std::uint32_t least = UINT32_MAX;
  for (const LevelFileFact& guard : census.levels) {
    if (guard.name.kind != SealedKind::guard || guard.id != id) continue;
    const auto& members = guard.guard.members;
    if (members.empty() || covered.contains(members.front())) continue;
    const GroupFiles files = files_of(census, guard);
    std::uint32_t missing = 0;
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      if (files.image_at[i] == no_rank || files.guard_at[i] == no_rank) ++missing;
    }
    const std::uint32_t losses = guard.guard.scheme().losses();
    if (missing > losses) return std::nullopt;
    least = std::min(least, losses - missing);
    covered.insert(members.begin(), members.end());
  }
  if (covered.size() != census.job.ranks) return std::nullopt;
  return least;
}

// Whether `id` can be had when any `count` nodes from `first` on are lost, besides `lost`.
bool bears(const Census& census, VersionId id, std::uint32_t count, std::uint32_t first,
           std::set<std::uint32_t>& lost) {
  if (count == 0) {
    const auto plan = plan_recovery(census.without(lost));
    return plan && plan->id >= id;
  }
  const std::set<std::uint32_t> nodes(census.nodes.begin(), census.nodes.end());
  for (const std::uint32_t node : nodes) {
    if (node < first) continue;
    lost.insert(node);
    const bool borne = bears(census, id, count - 1, node + 1, lost);
    lost.erase(node);
    if (!borne) return false;
  }
  return true;
}

}  // namespace

std::optional<VersionId> best_guarded(const Census& all) {
  const Census census = counted(all);
  std::set<VersionId> ids;
  for (const LevelFileFact& fact : census.levels) ids.insert(fact.id);
  std::optional<VersionId> best;
  std::uint32_t most = 0;
  for (const VersionId id : ids) {
    const auto left = losses_left(census, id);
    if (!left || *left < most) continue;
    most = *left;
    best = id;
  }
  return best;
}

std::uint32_t bearable_losses(const Census& census, VersionId id) {
  constexpr std::uint32_t counted_max = 3;
  std::uint32_t bearable = 0;
  std::set<std::uint32_t> lost;
  while (bearable < counted_max && bears(census, id, bearable + 1, 0, lost)) ++bearable;
  return bearable;
}

std::string describe_holdings(const Census& census) {
  std::set<std::uint32_t> with_file;
  for (const PoolFileFact& file : census.files) with_file.insert(file.rank);
  std::string text = "of " + std::to_string(census.job.ranks) +
                     " ranks these have a file of the pool on some node: " + list_of(with_file);
  std::map<VersionId, std::array<std::set<std::uint32_t>, 2>> held;
  for (const LevelFileFact& fact : counted(census).levels) {
    held[fact.id][fact.name.kind == SealedKind::guard ? 1 : 0].insert(fact.name.rank);
  }
  for (auto entry = held.rbegin(); entry != held.rend(); ++entry) {
    text += "; version " + std::to_string(entry->first.version) + ": images of ranks " +
            list_of(entry->second[0]) + ", guards of ranks " + list_of(entry->second[1]);
  }
  if (held.empty()) text += "; there are no images and no guards";
  if (const std::uint64_t newest = newest_given_up(census); newest > 0) {
    text += "; files of versions up to " + std::to_string(newest) +
            " don't count: a later start went on without them";
  }
  std::vector<std::string> hosts;
  for (std::uint32_t rank = 0; rank < census.hosts.size(); ++rank) {
    const bool leads = std::find(census.nodes.begin(), census.nodes.begin() + rank,
                                 census.nodes[rank]) == census.nodes.begin() + rank;
    if (leads) hosts.push_back(census.hosts[rank]);
  }
  return text + "; looked at on " + listed(hosts);
}

}  // namespace perdure
