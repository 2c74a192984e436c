// SPDX-License-Identifier: BSD-3-Clause
#include "levels/verify.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "levels/census.hpp"
#include "levels/manifest.hpp"
#include "levels/node_file.hpp"
#include "levels/recovery_plan.hpp"
#include "pool/inspect.hpp"

namespace perdure {
namespace {

using Ranks = std::vector<std::uint32_t>;

// The state word of a file that has no contents says whether it should have some, or is being made.
bool claims_contents(const Directory& directory, const std::string& name) {
  const auto file = directory.open_file(name, FileAccess::read);
  std::uint64_t word = 0;
  return file.ok() && ::pread(file.value().fd(), &word, sizeof word, 0) == sizeof word && word != 0;
}

// The groups that wrote guards of a version of which `census` has nothing else.
std::vector<KeptGroup> groups_of(const Census& census, const std::set<std::uint32_t>& images) {
  std::map<Ranks, KeptGroup> groups;
  std::map<Ranks, std::set<std::uint32_t>> guards;
  for (const LevelFileFact& fact : census.levels) {
    if (fact.name.kind != SealedKind::guard) continue;
    const Scheme scheme = fact.guard.scheme();
    groups[fact.guard.members] = {fact.guard.members, scheme.losses(), {}, scheme.text()};
    guards[fact.guard.members].insert(fact.name.rank);
  }
  std::vector<KeptGroup> all;
  for (auto& [members, group] : groups) {
    std::ranges::copy_if(members, std::back_inserter(group.missing), [&](auto rank) {
      return !images.contains(rank) || !guards[members].contains(rank);
    });
    all.push_back(std::move(group));
  }
  return all;
}

Ranks listed(const std::set<std::uint32_t>& ranks) {
  return {ranks.begin(), ranks.end()};
}

class Verification {
 public:
  Verification(const std::vector<std::string>& directories, const VerifyOptions& options)
      : directories_(directories), options_(options) {}

  Result<LevelsReport> run() {
    PERDURE_TRY_ASSIGN(census_, census_of(directories_, options_.trust));
    report_.job = census_.job;
    note_histories();
    for (const LevelFileFact& fact : census_.levels) total_ += fact.payload_bytes;
    look_at_pool();
    for (std::uint32_t node = 0; node < directories_.size(); ++node) {
      PERDURE_TRY(look_at_node(node));
    }
    for (const LevelFileFact& fact : census_.levels) ids_.insert(fact.id);
    for (auto id = ids_.rbegin(); id != ids_.rend(); ++id) report_.kept.push_back(judge(*id));
    for (const std::string& drain : options_.drains) PERDURE_TRY(look_at_drain(drain));
    list_outcomes();
    return report_;
  }

 private:
  Status note_read(std::uint64_t bytes) {
    done_ += bytes;
    if (!options_.progress || options_.progress(std::min(done_, total_), total_)) {
      return Status::success();
    }
    return {Code::busy, "it was stopped"};
  }

  void note_damage(const std::string& where, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.severity == Severity::damage) report_.problems.push_back(where + finding.text);
    }
  }

  void note_histories();
  void look_at_pool();
  void look_at_rank_file(std::uint32_t node, std::uint32_t rank);
  Status look_at_node(std::uint32_t node);
  Status read_level_file(const Directory& directory, const std::string& name, bool& ours);
  Census of_version(VersionId id) const;
  KeptVersion judge(VersionId id) const;
  Status look_at_drain(const std::string& drain);
  Status read_all(const Manifest& manifest);
  void list_outcomes();
  struct Drain {
    std::string place;
    std::optional<LeaseRecord> newest;
    std::set<std::string> whole;  // directories of versions
  };
  LevelChoice choose_without(const std::set<std::uint32_t>& lost) const;
  RestartVersion without(const std::set<std::uint32_t>& lost) const;
  void note_other_runs();
  std::string missing_without(VersionId held, const std::set<std::uint32_t>& lost) const;

  const std::vector<std::string>& directories_;
  const VerifyOptions& options_;
  Census census_;  // of what is whole
  std::set<VersionId> ids_;
  std::optional<VersionId> held_;  // by the ranks' files
  bool of_image_ = false;          // a file in use was made of an image that has what belongs to it
  bool went_back_ = false;         // levels.hpp, levels.K3
  LevelsReport report_;
  std::vector<Drain> drains_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

// Of the lineages on the nodes, as far as the drains know.
void Verification::note_histories() {
  for (const JobId& lineage : census_.lineages()) {
    for (const std::string& drain : options_.drains) {
      auto read = read_ancestors(place_of_pool(drain, directories_.front()), lineage);
      if (!read.ok() || read.value().empty()) continue;
      census_.histories.push_back({lineage, read.take()});
      break;
    }
  }
}

// The ranks' files that a restart would use, and what they say together.
void Verification::look_at_pool() {
  for (const std::string& path : directories_) {
    VerifiedNode& node = report_.nodes.emplace_back();
    node.directory = path;
    const auto directory = Directory::open(path, options_.trust);
    node.pool = directory.ok() && directory.value().holds(job_record_name);
  }
  std::map<std::uint32_t, std::string> used;
  std::vector<std::set<std::uint32_t>> left_over(directories_.size());
  for (const PoolFileFact& file : census_.files) left_over[file.at].insert(file.rank);
  for (const PoolFileFact* file : census_.files_in_use()) {
    if (file == nullptr) continue;
    left_over[file->at].erase(file->rank);
    used[file->rank] = directories_[file->at];
    report_.nodes[file->at].ranks.push_back(file->rank);
    report_.pool_files.push_back(file->rank);
    of_image_ = of_image_ || file->of_image;
  }
  for (std::size_t i = 0; i < left_over.size(); ++i) {
    report_.nodes[i].left_over = listed(left_over[i]);
  }
  const PoolReport pool = inspect_ranks(census_.job, used, {.verify_data = options_.data});
  for (const RankReport& rank : pool.ranks) note_damage(rank.path + ": ", rank.findings);
  const bool all = used.size() == census_.job.ranks;
  if (all) note_damage("pool: ", pool.findings);  // otherwise they say that ranks' files are away
  if (!all || !report_.problems.empty() || pool.version.value_or(0) == 0) return;
  const RankReport& first = pool.ranks.front();
  held_ = id_of(*first.slots[first.judgement.find(*pool.version)->slot].body);
  if (const std::string missing = missing_without(*held_, {}); !missing.empty()) {
    report_.problems.push_back("pool: " + missing);
  }
  went_back_ = std::ranges::any_of(pool.ranks, [&](const RankReport& rank) {
    return rank.judgement.head == held_->version && rank.judgement.next() > held_->version + 1;
  });
}

// Success also of what has no contents, or is another job's, which `ours` says.
Status Verification::read_level_file(const Directory& directory, const std::string& name,
                                     bool& ours) {
  const LevelFileName parsed = *parse_level_file_name(name);
  PERDURE_TRY_ASSIGN(const auto file, LevelFile::open(directory, parsed, options_.trust, true));
  if (!file.whole()) {
    if (!claims_contents(directory, name)) return Status::success();
    return Status(Code::damaged, file.path(), ": its header is damaged, or it was cut short");
  }
  ours = file.header().job.job_id == census_.job.job_id;
  if (!ours) return Status::success();
  if (parsed.kind == SealedKind::guard) PERDURE_TRY(guard_contents(file).status());
  return options_.data ? file.verify() : Status::success();
}

// The census leaves out what has no header of a pool's file.
void Verification::look_at_rank_file(std::uint32_t node, std::uint32_t rank) {
  const bool known = std::ranges::any_of(census_.files, [&](const PoolFileFact& fact) {
    return fact.at == node && fact.rank == rank;
  });
  if (known || rank >= census_.job.ranks) return;
  const PoolReport alone = inspect_ranks(census_.job, {{rank, directories_[node]}}, {});
  const RankReport& report = alone.ranks.front();
  note_damage(report.usable ? report.path + ": " : "", report.findings);
}

// Leaves what is damaged out of the census.
Status Verification::look_at_node(std::uint32_t node) {
  const auto directory = Directory::open(directories_[node], options_.trust);
  if (!directory.ok()) return Status::success();  // the census has said why, unless it is missing
  PERDURE_TRY_ASSIGN(const auto names, directory.value().names());
  for (const std::string& name : names) {
    if (const auto rank = rank_of_file(name)) look_at_rank_file(node, *rank);
    const auto parsed = parse_level_file_name(name);
    if (!parsed) continue;
    bool ours = true;
    const Status whole = read_level_file(directory.value(), name, ours);
    if (!ours) report_.foreign.push_back(directory.value().path_of(name));
    const auto fact = std::ranges::find_if(census_.levels, [&](const LevelFileFact& each) {
      return each.at == node &&
             level_file_name(each.name.kind, each.name.rank, each.name.slot) == name;
    });
    const std::uint64_t bytes = fact == census_.levels.end() ? 0 : fact->payload_bytes;
    if (!whole.ok()) {
      report_.problems.push_back(whole.message());
      if (fact != census_.levels.end()) census_.levels.erase(fact);
    }
    if (options_.data) PERDURE_TRY(note_read(bytes));
  }
  return Status::success();
}

Census Verification::of_version(VersionId id) const {
  Census alone = counted(census_);
  std::erase_if(alone.levels, [id](const LevelFileFact& fact) { return fact.id != id; });
  return alone;
}

KeptVersion Verification::judge(VersionId id) const {
  const Census alone = of_version(id);
  KeptVersion kept;
  kept.id = id;
  std::set<std::uint32_t> images;
  std::set<std::uint32_t> guards;
  for (const LevelFileFact& fact : alone.levels) {
    (fact.name.kind == SealedKind::image ? images : guards).insert(fact.name.rank);
  }
  kept.images = listed(images);
  kept.guards = listed(guards);
  kept.groups = groups_of(alone, images);
  kept.restorable = plan_recovery(alone).has_value();
  if (kept.restorable) kept.losses = bearable_losses(alone, id);
  return kept;
}

// All that the lineages of these nodes and of the newest lease have.
Status Verification::look_at_drain(const std::string& drain) {
  const std::string place = place_of_pool(drain, directories_.front());
  const auto newest = newest_lease(place);
  if (!newest.ok()) {
    report_.problems.push_back(newest.status().message());
    return Status::success();
  }
  drains_.push_back({place, newest.value(), {}});
  std::map<VersionId, Manifest> manifests;
  std::set<std::string> problems;
  for (const bool ours : {true, false}) {
    if (!ours && (!newest.value() || newest.value()->job.job_id != census_.job.job_id)) continue;
    const auto found =
        find_versions(place, ours ? census_.lineage() : lineage_of(newest.value()->job));
    if (!found.ok()) problems.insert(found.status().message());
    if (!found.ok()) continue;
    problems.insert(found.value().problems.begin(), found.value().problems.end());
    for (const Manifest& each : found.value().manifests) manifests.emplace(each.id, each);
  }
  report_.problems.insert(report_.problems.end(), problems.begin(), problems.end());
  for (auto each = manifests.rbegin(); each != manifests.rend(); ++each) {
    const Status whole = read_all(each->second);
    if (whole.code() == Code::busy) return whole;
    report_.drained.push_back({place, each->first, whole.message()});
    if (whole.ok()) drains_.back().whole.insert(each->second.directory);
    if (!whole.ok()) report_.problems.push_back(whole.message());
  }
  return Status::success();
}

Status Verification::read_all(const Manifest& manifest) {
  PERDURE_TRY_ASSIGN(const auto version, LevelDirectory::open(manifest.directory));
  for (const ManifestFile& file : manifest.files) total_ += file.bytes;
  for (const ManifestFile& file : manifest.files) {
    PERDURE_TRY_ASSIGN(const auto held, read_node_file(version, file.node));
    if (held.checksum != file.checksum) {
      return Status(Code::damaged, version.path_of(node_file_name(file.node)),
                    " is not the one that the manifest names");
    }
    for (const NodeImage& image : held.images) {
      if (!options_.data) continue;
      PERDURE_TRY(read_node_image(
          version, held, image, [](auto&) { return Status::success(); }, [](auto, auto) {}));
      PERDURE_TRY(note_read(image.bytes));
    }
  }
  return Status::success();
}

// joined_files.hpp, levels.K5.
std::string Verification::missing_without(VersionId held,
                                          const std::set<std::uint32_t>& lost) const {
  if (of_image_) return "";
  const PoolVersion version{{}, held.version, held.incarnation, 0};
  return missing_parts(
      census_.parts_where([&](std::uint32_t node) { return !lost.contains(node); }), version);
}

// joined_files.hpp, levels.K5.
LevelChoice Verification::choose_without(const std::set<std::uint32_t>& lost) const {
  const Census left = census_.without(lost);
  Holdings holdings;
  bool pool_lost = false;
  for (std::uint32_t node = 0; node < report_.nodes.size(); ++node) {
    if (!lost.contains(node) && report_.nodes[node].pool) holdings.nodes = &left;
    pool_lost = pool_lost || (lost.contains(node) && !report_.nodes[node].ranks.empty());
  }
  if (held_ && !pool_lost && missing_without(*held_, lost).empty()) {
    holdings.pool = {*held_, went_back_};
  }
  std::optional<JobLineage> known;
  if (holdings.nodes != nullptr) known = {left.job.job_id, left.lineage()};
  std::vector<DrainHolds> drains;
  for (const Drain& drain : drains_) {
    DrainHolds& holds = drains.emplace_back();
    auto read = look_into_drain(drain.place, drain.newest, known);
    if (!read.ok()) continue;
    holds = read.take();
    for (auto* found : {&holds.own, &holds.of_newest}) {
      std::erase_if(found->manifests,
                    [&drain](const auto& each) { return !drain.whole.contains(each.directory); });
    }
  }
  holdings.drains = drains;
  auto choice = choose_level(holdings);
  return choice.ok() ? choice.take() : LevelChoice{};
}

RestartVersion Verification::without(const std::set<std::uint32_t>& lost) const {
  const LevelChoice choice = choose_without(lost);
  return {choice.level, choice.id};
}

// What is drained and does not count, and what files of the pool hold and a restart gives up.
void Verification::note_other_runs() {
  const RestartVersion& now = report_.now;
  for (const auto& [drain, offer] : choose_without({}).forks) {
    const auto& counted = offer.versions.manifests;
    for (DrainedVersion& each : report_.drained) {
      if (each.place != drains_[drain].place || !each.problem.empty()) continue;
      each.fork = each.fork || std::ranges::find(counted, each.id, &Manifest::id) == counted.end();
    }
  }
  for (const PoolFileFact& file : census_.files) {
    if (now.level == RestartLevel::pool || file.head.version <= now.id.version) continue;
    report_.given_up = std::max(report_.given_up, file.head.version);
  }
}

void Verification::list_outcomes() {
  std::set<std::uint32_t> all;
  for (std::uint32_t i = 0; i < directories_.size(); ++i) {
    VerifiedNode& node = report_.nodes[i];
    for (auto id = ids_.rbegin(); id != ids_.rend(); ++id) {
      std::set<std::uint32_t> held[2];
      for (const LevelFileFact& fact : census_.levels) {
        if (fact.at != i || fact.id != *id) continue;
        held[fact.name.kind == SealedKind::guard ? 1 : 0].insert(fact.name.rank);
      }
      if (held[0].empty() && held[1].empty()) continue;
      node.kept.push_back({*id, listed(held[0]), listed(held[1])});
    }
    node.without = without({i});
    all.insert(i);
  }
  report_.now = without({});
  report_.without_all = without(all);
  note_other_runs();
}

}  // namespace

Result<LevelsReport> verify_levels(const std::vector<std::string>& directories,
                                   const VerifyOptions& options) {
  std::vector<std::string> once;  // a directory that is named twice is one node
  std::set<std::filesystem::path> seen;
  for (const std::string& directory : directories) {
    std::error_code error;
    const auto path = std::filesystem::weakly_canonical(directory, error);
    if (seen.insert(error ? std::filesystem::path(directory) : path).second)
      once.push_back(directory);
  }
  return Verification(once, options).run();
}

}  // namespace perdure
