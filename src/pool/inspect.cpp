// SPDX-License-Identifier: BSD-3-Clause
#include "pool/inspect.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "base/assert.hpp"
#include "base/files.hpp"
#include "pmem/file_device.hpp"
#include "pool/copy_check.hpp"
#include "pool/noted_files.hpp"
#include "pool/rank_files.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {
namespace {

struct OpenRank {
  std::unique_ptr<Device> device;
  Region region;
};

// Whose files they are is shown, and no reason not to look at them.
Result<OpenRank> open_rank(const std::string& path) {
  PERDURE_TRY_ASSIGN(
      auto device,
      open_file_device(path, {.read_only = true, .may_be_cut = true, .trust = Trust::anyone}));
  PERDURE_TRY_ASSIGN(auto region, check_region(*device));
  return OpenRank{std::move(device), std::move(region)};
}

std::string path_of_rank(const std::string& directory, const JobRecord& job, std::uint32_t rank) {
  const auto opened = Directory::open(directory, Trust::anyone);
  if (!opened.ok()) return rank_file_path(directory, rank);
  return opened.value().path_of(current_rank_file(opened.value(), job, rank));
}

void note_versions(RankReport& report) {
  for (const Offer& offer : report.judgement.offers) {
    if (!offer.reopened) report.complete_versions.push_back(offer.version);
  }
  if (report.complete_versions.empty()) return;
  const bool sound = report.judgement.damage.empty();
  report.newest = sound ? report.judgement.head : report.complete_versions.front();
  const Offer* const newest = report.judgement.find(*report.newest);
  PERDURE_ASSERT(newest != nullptr);
  report.catalogue = report.slots[newest->slot].body;
}

// Damage beside what a restart needs: versions that can't be restored any more.
void note_lost_versions(RankReport& report) {
  for (const SlotView& view : report.slots) {
    const bool lost = !view.state || (view.state->state == SlotState::complete &&
                                      report.judgement.find(view.state->version) == nullptr);
    if (lost) {
      report.findings.push_back(
          {Severity::damage,
           (view.state ? "version " + std::to_string(view.state->version)
                       : std::string("the version of a slot")) +
               " is lost: " + (view.state ? view.problem : "its state word is damaged")});
    }
  }
}

void verify_arrays(RankReport& report, const OpenRank& open) {
  for (const ArrayEntry& entry : report.catalogue->arrays) {
    if (entry.shape.mode == ArrayMode::flush) continue;
    Status status =
        verify_and_copy(*open.device, entry, open.region.geometry.block_bytes, nullptr, nullptr);
    if (!status.ok()) report.findings.push_back({Severity::damage, status.message()});
  }
}

RankReport inspect_rank(const std::string& directory, const JobRecord& job, std::uint32_t rank,
                        const InspectOptions& options) {
  RankReport report;
  report.rank = rank;
  report.path = path_of_rank(directory, job, rank);
  const auto damage = [&report](const std::string& text) {
    report.findings.push_back({Severity::damage, text});
  };
  auto open = open_rank(report.path);
  if (!open.ok()) {
    damage(open.status().message());
    return report;
  }
  const OpenRank& file = open.value();
  report.usable = true;
  report.region = file.region;
  report.file_bytes = file.device->size_bytes();
  report.keep = file.region.geometry.slots - 1;
  const RegionIdentity& identity = file.region.identity;
  if (!is_file_of(file.region, job, rank)) {
    damage("the file is rank " + std::to_string(identity.rank) + " of " +
           std::to_string(identity.ranks) + " of job " + job_id_text(identity.job_id) +
           ": swapped or copied from another pool, or of before the pool got " +
           std::to_string(job.ranks) + " ranks");
  }
  report.slots = Slots(*file.device, file.region).read_all();
  report.judgement = judge_slots(report.slots);
  note_versions(report);
  if (!report.judgement.damage.empty()) {
    damage(report.judgement.damage);
  } else {
    note_lost_versions(report);
    if (report.judgement.top_complete) {
      report.findings.push_back({Severity::crash, "a commit or restart was cut short"});
    }
  }
  if (options.verify_data && report.catalogue) verify_arrays(report, file);
  if (const Status whole = file.device->check(); !whole.ok()) damage(whole.message());
  return report;
}

// The ranks of the pool whose files are there.
Result<std::vector<std::uint32_t>> ranks_there(const Directory& directory, const JobRecord& job) {
  PERDURE_TRY_ASSIGN(auto names, directory.names());
  std::set<std::uint32_t> there;
  for (const std::string& name : names) {
    const auto next = rank_of_next_file(name);
    const auto rank = next ? next : rank_of_file(name);
    if (!rank || *rank >= job.ranks) continue;
    if (!next || current_rank_file(directory, job, *rank) == name) there.insert(*rank);
  }
  return std::vector<std::uint32_t>(there.begin(), there.end());
}

// However many ranks the job record claims, only what is there is looked at.
std::string missing_text(const std::vector<std::uint32_t>& there, std::uint32_t ranks) {
  constexpr std::size_t runs_max = 8;
  std::vector<std::string> runs;
  for (std::size_t i = 0; i <= there.size(); ++i) {
    const std::uint32_t begin = i == 0 ? 0 : there[i - 1] + 1;
    const std::uint32_t end = i == there.size() ? ranks : there[i];
    if (begin == end) continue;
    runs.push_back(end - begin == 1 ? sentence(begin) : sentence(begin, " to ", end - 1));
  }
  const char* more = runs.size() > runs_max ? " and more" : "";
  if (runs.size() > runs_max) runs.resize(runs_max);
  const std::size_t missing = ranks - there.size();
  return "the " + std::string(missing == 1 ? "file of rank " : "files of ranks ") + listed(runs) +
         more + (missing == 1 ? " is" : " are") + " missing: without " +
         (missing == 1 ? "it" : "them") + " no version is complete";
}

// The versions that all ranks hold, and their lineage as rank 0 has it.
void list_versions(PoolReport& report, const Choice& choice) {
  Retained retained(Geometry{.slots = report.keep + 1});
  const std::vector<SlotView>& slots = report.ranks.front().slots;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    const SlotView& view = slots[slot];
    if (!view.state || view.state->version % slots.size() != slot) continue;
    const StateWord& state = *view.state;
    if (state.state == SlotState::deleted) retained.drop(state.version, parent_of(state));
    if (state.state != SlotState::complete) continue;
    if (choice.lacking.contains(state.version)) {
      retained.drop(state.version, parent_of(state));
    } else {
      retained.note(*view.body);
    }
  }
  report.versions = retained.versions(choice.version, retained.slot_of(choice.next));
}

// The rules of recover.cpp, without exchanges.
void judge_ranks(PoolReport& report) {
  Positions positions;
  for (const RankReport& rank : report.ranks) {
    if (!rank.usable || !rank.judgement.damage.empty()) return;
    positions.add(Positions(rank.judgement));
  }
  const std::uint32_t slots = report.keep + 1;
  VersionSet lacking;
  for (const RankReport& rank : report.ranks) {
    const VersionSet its = lacking_versions(rank.judgement, positions, slots);
    lacking = {its.base, lacking.bits | its.bits};
  }
  const auto chosen = choose(positions, lacking, slots, false);
  const auto damage = [&report](const std::string& text) {
    report.findings.push_back({Severity::damage, text});
  };
  if (!chosen.ok()) return damage(chosen.status().message());
  const Choice& choice = chosen.value();
  std::optional<std::uint64_t> incarnation;
  for (const RankReport& rank : report.ranks) {
    const Status held = check_choice(rank.judgement, choice);
    const std::string name = "rank " + std::to_string(rank.rank);
    if (!held.ok()) return damage(name + ": " + held.message());
    const Offer* const its = rank.judgement.find(choice.version);
    PERDURE_ASSERT(its != nullptr);  // check_choice() has found it
    if (incarnation && *incarnation != its->incarnation) {
      return damage("the ranks' files are of different runs");
    }
    incarnation = its->incarnation;
    if (*rank.newest == choice.version) continue;
    report.findings.push_back({Severity::crash, name + " is ahead: its version " +
                                                    std::to_string(*rank.newest) +
                                                    " was not finished by all"});
  }
  report.version = choice.version;
  list_versions(report, choice);
}

Severity worst_of(const std::vector<Finding>& findings) {
  Severity worst = Severity::fine;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace

const Catalogue* catalogue_of(const RankReport& rank, std::uint64_t version) {
  const Offer* const offer = rank.judgement.find(version);
  const bool there = offer != nullptr && !offer->reopened && rank.slots[offer->slot].body;
  return there ? &*rank.slots[offer->slot].body : nullptr;
}

Severity PoolReport::worst() const {
  Severity worst = worst_of(findings);
  for (const RankReport& rank : ranks) worst = std::max(worst, worst_of(rank.findings));
  return worst;
}

PoolReport inspect_ranks(const JobRecord& job, const std::map<std::uint32_t, std::string>& files,
                         const InspectOptions& options) {
  PoolReport report;
  report.job = job;
  std::vector<std::uint32_t> there;
  for (const auto& [rank, directory] : files) {
    there.push_back(rank);
    report.ranks.push_back(inspect_rank(directory, job, rank, options));
  }
  const bool all_there = there.size() == job.ranks;
  if (!all_there) {
    report.findings.push_back({Severity::damage, missing_text(there, job.ranks)});
  }
  for (const RankReport& rank : report.ranks) {
    if (!rank.usable) continue;
    if (report.keep != 0 && rank.keep != report.keep) {
      report.findings.push_back({Severity::damage,
                                 "the ranks' files keep different numbers of "
                                 "versions"});
      return report;
    }
    report.keep = rank.keep;
  }
  if (all_there) judge_ranks(report);
  return report;
}

Result<PoolReport> inspect_pool(const std::string& directory, const InspectOptions& options) {
  PERDURE_TRY_ASSIGN(auto opened, Directory::open(directory, Trust::anyone));
  PERDURE_TRY_ASSIGN(auto job, read_job_record(opened));
  PERDURE_TRY_ASSIGN(auto there, ranks_there(opened, job));
  std::map<std::uint32_t, std::string> files;
  for (const std::uint32_t rank : there) files.emplace(rank, directory);
  PoolReport report = inspect_ranks(job, files, options);
  report.owner = opened.owner();
  report.moved = !job.place.allows(place_of(opened));
  report.directory = directory;
  return report;
}

namespace {

Status overtaken(const Slots& slots, std::uint64_t version) {
  return Status(Code::busy, slots.medium(), ": version ", version,
                " is no longer there, or is being stored over by the job that goes on with the "
                "pool; read a newer one, or have the pool keep more versions");
}

// Code::busy unless nothing was stored over the version so far. A slot is declared open before
// anything that it names is stored to (commit.cpp, pool.I1); only another rank may be a version
// further than this one's slots say (pool.I5).
Status check_still_there(const Slots& slots, std::uint64_t version, std::uint64_t incarnation) {
  std::atomic_thread_fence(std::memory_order_acquire);  // after the loads of the data
  const Judgement now = judge_slots(slots.read_all());
  const Offer* const offer = now.find(version);
  const bool weak = now.top_complete && version + slots.count() <= now.top + 1;
  if (offer != nullptr && !offer->reopened && offer->incarnation == incarnation && !weak) {
    return Status::success();
  }
  return overtaken(slots, version);
}

}  // namespace

Result<std::uint64_t> version_to_read(const PoolReport& report, std::uint32_t rank,
                                      std::optional<std::uint64_t> wanted) {
  if (!report.version) {
    return Status(Code::damaged, report.directory,
                  " holds no version that all ranks share; see `perdure pool check ",
                  report.directory, "`");
  }
  if (rank >= report.job.ranks) {
    return Status(Code::not_found, "the pool has ranks 0 to ", report.job.ranks - 1, ", not ",
                  rank);
  }
  const auto& held = report.versions;
  const bool there =
      !wanted || *wanted == *report.version ||
      std::ranges::any_of(held, [&](const VersionInfo& info) { return info.version == *wanted; });
  if (there) return wanted.value_or(*report.version);
  return Status(Code::not_found, report.directory, " holds no version ", *wanted,
                "; see `perdure pool versions ", report.directory, "`");
}

Result<DumpedArray> dump_array(const std::string& directory, std::uint32_t rank,
                               const std::string& name, std::optional<std::uint64_t> wanted,
                               std::uint32_t part) {
  PERDURE_TRY_ASSIGN(const auto report, inspect_pool(directory, {}));
  PERDURE_TRY_ASSIGN(const std::uint64_t version, version_to_read(report, rank, wanted));
  return read_array(directory, rank, name, part, version);
}

namespace {

struct OpenArray {
  OpenRank rank;
  std::string path;
  Catalogue catalogue;
  ArrayEntry entry;
};

Result<OpenArray> open_array(const std::string& directory, std::uint32_t rank,
                             const std::string& name, std::uint32_t part, std::uint64_t version) {
  PERDURE_TRY_ASSIGN(const auto opened, Directory::open(directory, Trust::anyone));
  PERDURE_TRY_ASSIGN(const auto job, read_job_record(opened));
  std::string path = opened.path_of(current_rank_file(opened, job, rank));
  PERDURE_TRY_ASSIGN(auto open, open_rank(path));
  const Slots slots(*open.device, open.region);
  SlotView view = slots.read(slots.slot_of(version));
  if (!view.body || view.body->version != version) return overtaken(slots, version);
  auto entry = view.body->find_array(name, part);
  if (!entry) {
    return Status(Code::not_found, "version ", version, " of rank ", rank, " has no array ",
                  quoted(name));
  }
  ArrayEntry found = *entry;
  return OpenArray{std::move(open), std::move(path), std::move(*view.body), std::move(found)};
}

}  // namespace

Result<DumpedArray> read_array(const std::string& directory, std::uint32_t rank,
                               const std::string& name, std::uint32_t part, std::uint64_t version) {
  PERDURE_TRY_ASSIGN(const auto array, open_array(directory, rank, name, part, version));
  const auto& [open, path, catalogue, entry] = array;
  DumpedArray dumped{version, entry.shape, std::vector<std::byte>(entry.size_bytes), path,
                     entry.copy_offset(entry.copy)};
  const Status read = verify_and_copy(*open.device, entry, open.region.geometry.block_bytes,
                                      dumped.bytes.data(), nullptr);
  PERDURE_TRY(check_still_there(Slots(*open.device, open.region), version, catalogue.incarnation));
  PERDURE_TRY(read);
  PERDURE_TRY(open.device->check());
  return dumped;
}

ArrayReader::ArrayReader(std::unique_ptr<Device> device, Region region, const Catalogue& catalogue,
                         StoredArray array)
    : device_(std::move(device)),
      region_(std::move(region)),
      version_(catalogue.version),
      incarnation_(catalogue.incarnation),
      array_(std::move(array)) {}

Result<ArrayReader> ArrayReader::open(const std::string& directory, std::uint32_t rank,
                                      const std::string& name, std::uint64_t version) {
  PERDURE_TRY_ASSIGN(auto found, open_array(directory, rank, name, 0, version));
  PERDURE_TRY_ASSIGN(auto file, open_file(found.path, FileAccess::read, Trust::anyone));
  auto array = StoredArray::open(std::move(file), found.path, found.entry,
                                 found.rank.region.geometry.block_bytes);
  PERDURE_TRY(check_still_there(Slots(*found.rank.device, found.rank.region), version,
                                found.catalogue.incarnation));
  PERDURE_TRY(array.status());
  return ArrayReader(std::move(found.rank.device), std::move(found.rank.region), found.catalogue,
                     array.take());
}

Status ArrayReader::read(std::uint64_t first, std::uint64_t count, std::byte* to) {
  if (first > size_bytes() || count > size_bytes() - first) {
    return Status(Code::invalid_argument, "bytes ", first, " to ", first, " + ", count,
                  " reach beyond the ", size_bytes(), " that the array has");
  }
  const Status read = array_.read(first, count, to);
  PERDURE_TRY(check_still_there(Slots(*device_, region_), version_, incarnation_));
  return read;
}

namespace {

// What of a directory is the pool's: rank files, and job records that were never finished.
struct PoolFiles {
  std::vector<std::string> ranks;
  std::vector<std::string> unfinished;
};

// `job`: null if the record says nothing, and then all rank files are the pool's; else one of a
// higher number is its own only if it was so before the pool got another number of ranks.
Result<PoolFiles> pool_files(const Directory& directory, const JobRecord* job) {
  PERDURE_TRY_ASSIGN(auto names, directory.names());
  PoolFiles files;
  for (const std::string& name : names) {
    const auto rank = rank_of_file(name);
    const bool is_rank = rank && (job == nullptr || *rank < job->ranks);
    if (is_rank) files.ranks.push_back(name);
    const bool old = rank && !is_rank && is_remains(directory, *job, name);
    const bool next = rank_of_next_file(name).has_value();
    if (is_unfinished(name) || next || old) files.unfinished.push_back(name);
  }
  return files;
}

// Nobody else may be using the files, and each must be one that a pool can have.
Status lock_ranks(const Directory& directory, const PoolFiles& files, Trust trust,
                  std::vector<std::unique_ptr<Device>>& held) {
  for (const std::string& name : files.ranks) {
    PERDURE_TRY_ASSIGN(auto device, open_file_device(directory.path_of(name),
                                                     {.lock_wait_ms = 0, .trust = trust}));
    held.push_back(std::move(device));
  }
  return Status::success();
}

}  // namespace

Status adopt_pool(const std::string& path, Trust trust) {
  PERDURE_TRY_ASSIGN(auto directory, Directory::open(path, trust));
  PERDURE_TRY_ASSIGN(auto job, read_job_record(directory));
  return write_job_record(directory, job, 0);
}

Status remove_pool(const std::string& path, Trust trust,
                   const std::function<bool(const std::string& name)>& belongs) {
  PERDURE_TRY_ASSIGN(auto opened, Directory::open(path, trust));
  const Directory& directory = opened;
  auto job = read_job_record(directory);
  if (!job.ok() && job.status().code() != Code::damaged) return job.status();
  PERDURE_TRY_ASSIGN(const auto files, pool_files(directory, job.ok() ? &job.value() : nullptr));
  std::vector<std::unique_ptr<Device>> held;
  PERDURE_TRY(lock_ranks(directory, files, trust, held));
  for (const std::string& name : files.ranks) PERDURE_TRY(directory.remove_file(name));
  for (const std::string& name : files.unfinished) {
    PERDURE_TRY(directory.remove_file(name));
  }
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    const bool goes = is_first_note_file(name) || (belongs && belongs(name));
    if (goes) PERDURE_TRY(directory.remove_file(name));
  }
  PERDURE_TRY(directory.sync());
  PERDURE_TRY(directory.remove_file(job_record_name));
  PERDURE_TRY(directory.sync());
  remove_directory(path);  // stays if the user keeps other files in it
  return Status::success();
}

}  // namespace perdure
