#include "object/inspect.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "object/versioned_array.hpp"
#include "pmem/file_device.hpp"

namespace perdure {
namespace {

struct OpenRank {
  std::unique_ptr<Device> device;
  Region region;
};

Result<OpenRank> open_rank(const std::string& directory, std::uint32_t rank) {
  FileDeviceOptions options;
  options.read_only = true;
  auto device = open_file_device(rank_file_path(directory, rank), options);
  if (!device.ok()) return device.status();
  auto region = check_region(*device.value());
  if (!region.ok()) return region.status();
  return OpenRank{device.take(), region.take()};
}

bool is_complete(const SlotView& view) {
  return view.state && view.state->state == SlotState::complete && view.body &&
         view.body->version == view.state->version;
}

void note_versions(RankReport& report, const std::array<SlotView, 2>& views) {
  for (const SlotView& view : views) {
    if (!is_complete(view)) continue;
    report.complete_versions.push_back(view.body->version);
    if (!report.newest || view.body->version > *report.newest) {
      report.newest = view.body->version;
      report.catalogue = view.body;
    }
  }
  std::sort(report.complete_versions.rbegin(), report.complete_versions.rend());
}

void verify_arrays(RankReport& report, const OpenRank& open) {
  for (const ArrayEntry& entry : report.catalogue->arrays) {
    Status status =
        verify_and_copy(*open.device, entry, open.region.geometry.block_bytes, nullptr, nullptr);
    if (!status.ok()) report.findings.push_back({Severity::damage, status.message()});
  }
}

RankReport inspect_rank(const std::string& directory, const JobRecord& job, std::uint32_t rank,
                        const InspectOptions& options) {
  RankReport report;
  report.rank = rank;
  report.path = rank_file_path(directory, rank);
  const auto damage = [&report](const std::string& text) {
    report.findings.push_back({Severity::damage, text});
  };
  auto open = open_rank(directory, rank);
  if (!open.ok()) {
    damage(open.status().message());
    return report;
  }
  const OpenRank& file = open.value();
  report.usable = true;
  report.file_bytes = file.device->size_bytes();
  const RegionIdentity& identity = file.region.identity;
  if (!(identity.job_id == job.job_id) || identity.rank != rank || identity.ranks != job.ranks) {
    damage("the file is rank " + std::to_string(identity.rank) + " of job " +
           job_id_text(identity.job_id) + ": swapped or copied from another pool");
  }
  const auto views = Slots(*file.device, file.region).read_both();
  note_versions(report, views);
  auto judged = judge_slots(views, false);
  if (!judged.ok()) damage(judged.status().message());
  if (judged.ok() && report.complete_versions.size() == 2) {
    report.findings.push_back({Severity::crash, "a commit or restart was cut short"});
  }
  if (options.verify_data && report.catalogue) verify_arrays(report, file);
  return report;
}

// The rule of recover.cpp: the newest version that all ranks hold.
void judge_ranks(PoolReport& report) {
  std::optional<std::uint64_t> version;
  for (const RankReport& rank : report.ranks) {
    if (!rank.newest) return;
    version = version ? std::min(*version, *rank.newest) : *rank.newest;
  }
  std::optional<std::uint64_t> incarnation;
  for (const RankReport& rank : report.ranks) {
    const auto& held = rank.complete_versions;
    if (std::find(held.begin(), held.end(), *version) == held.end()) {
      report.findings.push_back(
          {Severity::damage, "rank " + std::to_string(rank.rank) + " lacks version " +
                                 std::to_string(*version) + ", the newest of another rank"});
      return;
    }
    if (*rank.newest > *version) {
      report.findings.push_back(
          {Severity::crash, "rank " + std::to_string(rank.rank) + " is ahead: its version " +
                                std::to_string(*rank.newest) + " was not finished by all"});
    }
    if (*rank.newest != *version) continue;
    if (!incarnation) incarnation = rank.catalogue->incarnation;
    if (*incarnation != rank.catalogue->incarnation) {
      report.findings.push_back({Severity::damage, "the ranks' files are of different runs"});
      return;
    }
  }
  report.version = version;
}

Severity worst_of(const std::vector<Finding>& findings) {
  Severity worst = Severity::fine;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace

Severity PoolReport::worst() const {
  Severity worst = worst_of(findings);
  for (const RankReport& rank : ranks) worst = std::max(worst, worst_of(rank.findings));
  return worst;
}

Result<PoolReport> inspect_pool(const std::string& directory, const InspectOptions& options) {
  auto job = read_job_record(directory);
  if (!job.ok()) return job.status();
  PoolReport report;
  report.directory = directory;
  report.job = job.take();
  for (std::uint32_t rank = 0; rank < report.job.ranks; ++rank) {
    report.ranks.push_back(inspect_rank(directory, report.job, rank, options));
  }
  judge_ranks(report);
  return report;
}

Result<DumpedArray> dump_array(const std::string& directory, std::uint32_t rank,
                               const std::string& name) {
  auto report = inspect_pool(directory, {});
  if (!report.ok()) return report.status();
  if (!report.value().version) {
    return Status(Code::damaged, directory +
                                     " holds no version that all ranks share; see "
                                     "`perdure pool check " +
                                     directory + "`");
  }
  if (rank >= report.value().job.ranks) {
    return Status(Code::not_found, "the pool has ranks 0 to " +
                                       std::to_string(report.value().job.ranks - 1) + ", not " +
                                       std::to_string(rank));
  }
  auto open = open_rank(directory, rank);
  if (!open.ok()) return open.status();
  const std::uint64_t version = *report.value().version;
  const SlotView view = Slots(*open.value().device, open.value().region)
                            .read(static_cast<std::uint32_t>(version % 2));
  const ArrayEntry* entry = view.body ? view.body->find_array(name) : nullptr;
  if (entry == nullptr) {
    return Status(Code::not_found, "version " + std::to_string(version) + " of rank " +
                                       std::to_string(rank) + " has no array " + quoted(name));
  }
  DumpedArray dumped{entry->shape, std::vector<std::byte>(entry->size_bytes)};
  PERDURE_TRY(verify_and_copy(*open.value().device, *entry,
                              open.value().region.geometry.block_bytes, dumped.bytes.data(),
                              nullptr));
  return dumped;
}

Status remove_pool(const std::string& directory) {
  auto job = read_job_record(directory);
  if (!job.ok() && job.status().code() != Code::damaged) return job.status();
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("rank-", 0) == 0) files.push_back(entry.path().string());
  }
  if (error) return errno_status("reading " + directory, error.value());
  std::vector<std::unique_ptr<Device>> held;  // locks: nobody else may be using the files
  for (const std::string& file : files) {
    FileDeviceOptions options;
    options.lock_wait_ms = 0;
    auto device = open_file_device(file, options);
    if (device.ok()) held.push_back(device.take());
    if (!device.ok() && device.status().code() == Code::busy) return device.status();
  }
  files.insert(files.begin(), job_record_path(directory));
  for (const std::string& file : files) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      return errno_status("removing " + file, errno);
  }
  ::rmdir(directory.c_str());  // stays if the user keeps other files in it
  return Status::success();
}

}  // namespace perdure
