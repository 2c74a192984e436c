// SPDX-License-Identifier: BSD-3-Clause
#include "levels/other_ranks.hpp"

#include <algorithm>
#include <memory>

#include "base/agreement.hpp"
#include "levels/drained_pool.hpp"
#include "levels/node_file.hpp"
#include "levels/pool_drain.hpp"
#include "pool/image.hpp"
#include "pool/rank_files.hpp"

namespace perdure {
namespace {

// What this rank's node has of the pool; nothing where another rank speaks for it.
struct OwnRecord {
  std::optional<Directory> directory;
  std::optional<JobRecord> job;
};

Result<OwnRecord> read_own(const std::vector<std::uint32_t>& nodes, std::uint32_t rank,
                           const std::string& path, Trust trust) {
  OwnRecord own;
  if (std::ranges::find(nodes, nodes[rank]) - nodes.begin() != rank) return own;
  auto directory = Directory::open(path, trust);
  if (!directory.ok()) return own;  // who opens the pool says so
  auto job = read_job_record(directory.value());
  if (job.ok()) own.job = job.take();
  own.directory = directory.take();
  return own;
}

// pool.R7.
Status take_newer(const OwnRecord& own, const JobRecord& newest, std::uint32_t rank, Trust trust) {
  if (!own.job || own.job->generation >= newest.generation) return Status::success();
  if (youngest_age(*own.directory, newest.job_id, trust) > newest.generation) {
    return Status(Code::foreign, own.directory->path(), " holds versions that ", own.job->ranks,
                  " ranks made, and other nodes the same job's pool, with which ", newest.ranks,
                  " ranks went on before: start on the nodes of one of them, or move the other "
                  "ones' directories away");
  }
  return write_job_record(*own.directory, newest, rank);
}

}  // namespace

Status settle_records(Group& group, const std::string& directory, Trust trust,
                      std::uint32_t lock_wait_ms) {
  PERDURE_TRY_ASSIGN(const auto nodes, group.nodes());
  PERDURE_TRY_ASSIGN(const OwnRecord own, read_own(nodes, group.rank(), directory, trust));
  std::uint64_t words[6] = {};
  if (own.job) {
    const std::uint64_t all[] = {own.job->job_id.words[0], own.job->job_id.words[1],
                                 own.job->generation};
    for (std::size_t i = 0; i < 3; ++i) {
      words[2 * i] = all[i];
      words[2 * i + 1] = ~all[i];
    }
  }
  PERDURE_TRY(agree_max(group, Status::success(), words));
  const bool one_job = words[0] == ~words[1] && words[2] == ~words[3];
  const std::uint64_t generation = words[4];
  if (!one_job || generation == 0) return Status::success();  // the census says what is wrong
  if (generation != ~words[5]) {
    const bool newest = own.job && own.job->generation == generation;
    std::uint64_t ranks[] = {newest ? own.job->ranks : 0U};
    PERDURE_TRY(agree_max(group, Status::success(), ranks));
    JobRecord job = own.job.value_or(JobRecord{});
    job.ranks = static_cast<std::uint32_t>(ranks[0]);
    job.generation = generation;
    PERDURE_TRY(agree(group, take_newer(own, job, group.rank(), trust)));
  }
  return agree(group,
               own.job ? settle_names(directory, 0, 1, lock_wait_ms, trust) : Status::success());
}

Result<bool> see_one_directory(Group& group, const std::string& directory, Trust trust) {
  const auto own = Directory::open(directory, trust);
  std::uint64_t lacks[] = {own.ok() && own.value().holds(job_record_name) ? 0U : 1U};
  PERDURE_TRY(agree_max(group, Status::success(), lacks));
  if (lacks[0] != 0) return false;
  PERDURE_TRY_ASSIGN(const auto sharers, ranks_with(&own.value(), group));
  std::uint64_t fewer[] = {sharers.size() == group.ranks() ? 0U : 1U};
  PERDURE_TRY(agree_max(group, Status::success(), fewer));
  return fewer[0] == 0;
}

std::optional<PoolHolds> held_by_files(const Census& census) {
  const auto files = census.files_in_use();
  const PoolFileFact* least = nullptr;
  for (const PoolFileFact* file : files) {
    if (file == nullptr) return std::nullopt;
    if (least == nullptr || file->head.version < least->head.version) least = file;
  }
  if (least == nullptr || least->head.version == 0) return std::nullopt;
  const bool restored = std::ranges::any_of(files, [least](const PoolFileFact* file) {
    return file->restored && file->head == least->head;
  });
  return PoolHolds{least->head, restored};
}

Status drain_held(Group& group, BringBack& back, const std::string& directory, Trust trust,
                  const Census& census, VersionId id, const std::optional<RecoveryPlan>& images,
                  const std::string& place) {
  JobRecord job = census.job;
  job.lineage = census.lineage();
  const auto made = make_version(place, lineage_of(job), id);
  PERDURE_TRY(agree(group, made.status()));
  ManifestWriter manifest(place, job, id);
  const auto complete = group.rank() == 0 ? manifest.try_write() : Result<bool>(false);
  std::uint64_t words[] = {complete.ok() && complete.value() ? 1U : 0U};
  PERDURE_TRY(agree_max(group, Status::success(), words));  // what is damaged is made anew
  if (words[0] != 0) return Status::success();
  std::vector<std::uint32_t> at;
  if (images) {
    PERDURE_TRY_ASSIGN(at, back.rebuild_lost(census, *images));
  } else {
    for (const PoolFileFact* file : census.files_in_use()) at.push_back(file->at);
  }
  Status local;
  for (std::uint32_t rank = 0; rank < job.ranks && local.ok(); ++rank) {
    if (at[rank] != group.rank()) continue;
    if (!images) {
      local = drain_rank(directory, job, rank, id, place, trust);
      continue;
    }
    const auto file = back.image_of(rank, id);
    const auto image =
        file.ok() ? image_of_file(file.value()) : Result<DrainedImage>(file.status());
    if (!image.ok()) {
      local = image.status();
      continue;
    }
    local = write_node_file(made.value(), job, id, {&image.value(), 1}, nullptr);
  }
  PERDURE_TRY(agree(group, local));
  if (group.rank() == 0) {
    const auto written = ManifestWriter(place, job, id).try_write();
    local = written.status();
    if (written.ok() && !written.value()) {
      local = Status(Code::not_found, "of version ", id.version, " rank 0 does not see all images ",
                     "in ", place, ": all ranks need that directory");
    }
  }
  return agree(group, local);
}

namespace {

// [collective] Reads all of them, each on one rank.
Status check_images(Group& group, const Manifest& manifest) {
  const auto check = [&]() -> Status {
    for (std::uint32_t rank = group.rank(); rank < manifest.job.ranks; rank += group.ranks()) {
      PERDURE_TRY_ASSIGN(const FoundImage found, find_image(manifest, rank));
      PERDURE_TRY(read_node_image(
          found.version, found.file, found.image, [](auto&) { return Status::success(); },
          [](auto, auto) {}));
    }
    return Status::success();
  };
  return agree(group, check());
}

}  // namespace

Result<OldVersion> old_version_of(const Manifest& manifest) {
  OldVersion old;
  old.job = manifest.job;
  old.place = manifest.directory;
  const auto offsets = std::make_shared<std::vector<std::map<std::string, std::uint64_t>>>();
  for (std::uint32_t rank = 0; rank < manifest.job.ranks; ++rank) {
    PERDURE_TRY_ASSIGN(OpenImage image, open_image(manifest, rank));
    ImageContents& contents = image.contents;
    if (!contents.shares.empty()) {
      return Status(Code::rank_mismatch, image.reader.path(), " was made by ", manifest.job.ranks,
                    " ranks, and ", contents.shares.begin()->first,
                    " is committed with it, which no other number of ranks can take over; start ",
                    manifest.job.ranks, " ranks, and close the file");
    }
    auto& its = offsets->emplace_back();
    std::size_t place = 0;
    for (const ArrayEntry& entry : contents.catalogue.arrays) {
      const std::uint64_t at = contents.copy_offsets[place++];
      if (entry.part == 0) its[entry.name] = at;
    }
    old.geometry = contents.geometry;
    old.catalogues.push_back(std::move(contents.catalogue));
  }
  old.open_array = [manifest, offsets](std::uint32_t rank,
                                       const ArrayEntry& entry) -> Result<StoredArray> {
    PERDURE_TRY_ASSIGN(const FoundImage found, find_image(manifest, rank));
    PERDURE_TRY_ASSIGN(auto opened, NodeImageReader::open(found.version, found.file, found.image));
    const auto reader = std::make_shared<NodeImageReader>(std::move(opened));
    const auto read = [reader](std::uint64_t offset, std::uint64_t count, std::byte* to) {
      return reader->read(offset, count, to);
    };
    return StoredArray::in_image(read, reader->path(), entry, (*offsets)[rank].at(entry.name));
  };
  return old;
}

Status OtherRanks::lock() {
  if (locked_) return Status::success();
  const auto opened = Directory::open(directory_, trust_);
  const bool none = opened.status().code() == Code::not_found;
  PERDURE_TRY(agree(group_, none ? Status::success() : opened.status()));
  PERDURE_TRY_ASSIGN(const auto sharers, ranks_with(none ? nullptr : &opened.value(), group_));
  std::vector<FileHandle> locks;
  const auto lock_own = [&]() -> Status {
    if (none || sharers.front() != group_.rank()) return Status::success();
    const Directory& own = opened.value();
    PERDURE_TRY_ASSIGN(const auto names, own.names());
    for (const std::string& name : names) {
      if (!rank_of_file(name)) continue;
      PERDURE_TRY_ASSIGN(auto file, own.open_file(name, FileAccess::read));
      const Status locked =
          lock_file(file.fd(), own.path_of(name), {.wait_ms = lock_wait_ms_, .own_at_once = true});
      if (!locked.ok() && locked.code() != Code::unsupported) return locked;
      locks.push_back(std::move(file));
    }
    return Status::success();
  };
  PERDURE_TRY(agree(group_, lock_own()));
  locks_ = std::move(locks);
  locked_ = true;
  return Status::success();
}

void OtherRanks::unlock() {
  locks_.clear();
  locked_ = false;
}

Status OtherRanks::divide(const Manifest& drained, std::uint64_t incarnation_max) {
  PERDURE_TRY(check_images(group_, drained));
  incarnation_max_ = incarnation_max;
  drained_ = drained;
  return Status::success();
}

Result<OldVersion> OtherRanks::take_old_version() {
  auto version = old_version_of(*drained_);
  PERDURE_TRY(agree(group_, version.status()));
  version.value().locks = std::move(locks_);
  return version;
}

void OtherRanks::make_anew() {
  unlock();
  makes_anew_ = true;
}

}  // namespace perdure
