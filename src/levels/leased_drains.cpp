// SPDX-License-Identifier: BSD-3-Clause
#include "levels/leased_drains.hpp"

#include <algorithm>
#include <cstdio>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "levels/manifest.hpp"

namespace perdure {
namespace {

// The file system refuses, and not what is on it.
bool is_of_the_system(const Status& status) {
  const Code code = status.code();
  return code == Code::io_error || code == Code::no_space || code == Code::not_found ||
         code == Code::unsupported;
}

// A directory that is missing is made, but not what it would be in: that may have to be mounted.
Status check_there(const std::string& path) {
  const auto there = LevelDirectory::open(path);
  if (there.ok() || there.status().code() != Code::not_found) return there.status();
  const std::string upper = split_path(path).directory;
  PERDURE_TRY_ASSIGN(const bool parent, LevelDirectory::exists(upper));
  if (parent) return Status::success();
  return Status(Code::not_found, "there is no directory ", upper, " for the drain ", path,
                "; make it, or mount what it is on");
}

constexpr std::string_view note_prefix = "drained-";
constexpr std::size_t note_digits = 16;

std::string note_name(const std::string& place) {
  return std::string(note_prefix) + digits_of(crc64(place.data(), place.size()));
}

bool is_missing(const std::string& path) {
  const auto there = LevelDirectory::exists(path);
  return there.ok() && !there.value();
}

}  // namespace

bool is_drain_note(std::string_view name) {
  return name.starts_with(note_prefix) && name.size() == note_prefix.size() + note_digits &&
         name.find_first_not_of("0123456789abcdef", note_prefix.size()) == std::string_view::npos;
}

LeasedDrains::LeasedDrains(Group& group, std::string directory, std::vector<DrainTarget> targets,
                           std::chrono::milliseconds patience)
    : group_(group), directory_(std::move(directory)), patience_(patience) {
  for (DrainTarget& target : targets) {
    LeasedDrain drain;
    drain.place = place_of_pool(target.directory, directory_);
    drain.target = std::move(target);
    drains_.push_back(std::move(drain));
  }
}

void LeasedDrains::leave_out(LeasedDrain& drain, const Status& why) {
  drain.usable = false;
  drain.problem = why;
  sentences_.push_back("this run goes on without the drain " + drain.target.directory + ": " +
                       why.message());
}

Status LeasedDrains::agree_on_usable(const Status& local) {
  for (LeasedDrain& drain : drains_) {
    std::uint64_t words[] = {drain.usable ? 0U : 1U, drain.number};
    PERDURE_TRY(agree_max(group_, local, words));
    drain.usable = words[0] == 0;
    drain.number = words[1];
  }
  return Status::success();
}

Status LeasedDrains::find_notes() {
  const auto pool = Directory::open(directory_, Trust::anyone);
  for (LeasedDrain& drain : drains_) {
    std::uint64_t words[] = {pool.ok() && pool.value().holds(note_name(drain.place)) ? 1U : 0U};
    PERDURE_TRY(agree_max(group_, Status::success(), words));
    drain.noted = words[0] != 0;
  }
  return Status::success();
}

Status LeasedDrains::note_places(Trust trust) {
  const auto pool = Directory::open(directory_, trust);
  Status local = pool.status();
  for (const LeasedDrain& drain : drains_) {
    const std::string name = note_name(drain.place);
    if (!local.ok() || !drain.usable || pool.value().holds(name)) continue;
    local = pool.value().replace_file(name, "", std::to_string(group_.rank()));
  }
  return agree(group_, local);
}

Result<std::optional<LeaseRecord>> LeasedDrains::look_at(const LeasedDrain& drain,
                                                         const std::string& job_name) {
  PERDURE_TRY(check_there(drain.target.directory));
  if (drain.noted && is_missing(drain.place)) {
    return Status(Code::not_found, "this pool was drained to ", drain.place,
                  ", which is not there; mount what it is on. If it was removed on purpose, make "
                  "that directory, and the drain begins anew");
  }
  if (is_missing(drain.target.directory)) {
    sentences_.push_back("the drain " + drain.target.directory +
                         " is not there and is made; if it was to be mounted, end this job");
  }
  PERDURE_TRY_ASSIGN(auto newest, newest_lease(drain.place));
  if (newest) PERDURE_TRY(check_name(drain.place, *newest, job_name));
  if (drain.noted && !newest) {
    sentences_.push_back("the drain " + drain.place +
                         " begins anew: what this pool had drained to it is not there any more");
  }
  return newest;
}

Status LeasedDrains::look(const std::string& job_name) {
  PERDURE_TRY(find_notes());
  Status local;
  for (LeasedDrain& drain : drains_) {
    if (group_.rank() != 0) break;
    auto newest = look_at(drain, job_name);
    if (newest.ok()) {
      drain.newest = newest.take();
    } else if (is_of_the_system(newest.status())) {
      leave_out(drain, newest.status());
    } else {
      local = newest.status();
    }
  }
  return agree_on_usable(local);
}

Status LeasedDrains::clear(const JobRecord* own) {
  Status local;
  for (LeasedDrain& drain : drains_) {
    if (!drain.usable || drain.clear || taken_ || group_.rank() != 0 || !local.ok()) continue;
    const bool ours = own != nullptr && drain.newest && same_lineage(drain.newest->job, *own);
    const Status gone =
        drain.newest && !ours ? wait_until_gone(drain.place, *drain.newest) : Status::success();
    drain.clear = gone.ok();
    if (gone.ok()) continue;
    if (is_of_the_system(gone)) {
      leave_out(drain, gone);
    } else {
      local = gone;
    }
  }
  return agree_on_usable(local);
}

Status LeasedDrains::take(const JobRecord& job, const Ancestors* ancestors,
                          std::optional<std::size_t> needed) {
  Status local;
  for (std::size_t i = 0; i < drains_.size() && group_.rank() == 0 && local.ok(); ++i) {
    LeasedDrain& drain = drains_[i];
    if (!drain.usable) continue;
    Status taken =
        ancestors == nullptr ? Status::success() : write_ancestors(drain.place, job, *ancestors);
    if (taken.ok() && drain.lease) taken = drain.lease->set_job(job);
    if (taken.ok() && !drain.lease) {
      const std::uint64_t above = drain.newest ? drain.newest->number : 0;
      auto lease = Lease::take(
          drain.place, job, above, patience_, [directory = directory_](const Status& why) {
            std::fprintf(stderr, "perdure: %s: %s\n", directory.c_str(), why.message().c_str());
          });
      taken = lease.status();
      if (lease.ok()) drain.lease = lease.take();
    }
    if (taken.ok()) {
      drain.number = drain.lease->number();
    } else if (is_of_the_system(taken) && needed != i) {
      leave_out(drain, taken);
    } else {
      local = taken;
    }
  }
  taken_ = true;
  return agree_on_usable(local);
}

// Step 3, where nothing was found: of what the lease before was of, or of a job that is not there
// yet.
Status LeasedDrains::take_for_now(const std::string& job_name) {
  JobRecord job{random_job_id(), job_name, group_.ranks(), 0, {}, {}};
  for (const LeasedDrain& drain : drains_) {
    if (drain.usable && drain.newest) job = drain.newest->job;
  }
  return take(job);
}

Status LeasedDrains::take_for_pool(const JobRecord& job, Trust trust) {
  PERDURE_TRY(clear(&job));
  PERDURE_TRY(take(job));
  return note_places(trust);
}

void LeasedDrains::give_back(std::chrono::milliseconds patience) {
  for (LeasedDrain& drain : drains_) {
    if (drain.lease) drain.lease->give_back(patience);
  }
}

bool LeasedDrains::any_usable() const {
  return std::ranges::any_of(drains_, &LeasedDrain::usable);
}

// Rank 0 reads. What it can't read is not known.
Result<Ancestors> LeasedDrains::ancestors_of(const JobId& lineage) {
  Ancestors found;
  for (const LeasedDrain& drain : drains_) {
    if (group_.rank() != 0 || !drain.usable || !found.empty()) continue;
    auto read = read_ancestors(drain.place, lineage);
    if (read.ok()) found = read.take();
  }
  std::uint64_t count[] = {found.size()};
  PERDURE_TRY(agree_max(group_, Status::success(), count));
  std::vector<std::uint64_t> words;
  for (const Ancestor& each : found) {
    words.insert(words.end(), {each.lineage.words[0], each.lineage.words[1], each.until.incarnation,
                               each.until.version});
  }
  words.resize(4 * count[0]);
  if (!words.empty()) PERDURE_TRY(group_.all_max(words));
  found.clear();
  for (std::size_t i = 0; i < words.size(); i += 4) {
    found.push_back({{{words[i], words[i + 1]}}, {words[i + 2], words[i + 3]}});
  }
  return found;
}

Result<Census> LeasedDrains::census(Trust trust) {
  PERDURE_TRY_ASSIGN(auto census, take_census(group_, directory_, trust));
  if (!any_usable()) return census;
  const auto lineages = census.lineages();
  for (std::size_t i = 0; lineages.size() > 1 && i < lineages.size(); ++i) {
    PERDURE_TRY_ASSIGN(auto ancestors, ancestors_of(lineages[i]));
    census.histories.push_back({lineages[i], std::move(ancestors)});
  }
  return census;
}

Status LeasedDrains::problem() const {
  const auto found = std::ranges::find(drains_, false, &LeasedDrain::usable);
  return found == drains_.end() ? Status::success() : found->problem;
}

}  // namespace perdure
