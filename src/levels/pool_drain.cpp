// SPDX-License-Identifier: BSD-3-Clause
#include "levels/pool_drain.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/checksum.hpp"
#include "levels/lease.hpp"
#include "levels/manifest.hpp"
#include "levels/node_file.hpp"
#include "parts/part_facts.hpp"
#include "pmem/file_device.hpp"
#include "pool/copy_check.hpp"
#include "pool/image.hpp"
#include "pool/judgement.hpp"
#include "pool/slots.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {
namespace {

constexpr std::size_t versions_min = 2;

// A rank's version, ready to be read.
struct HeldVersion {
  std::unique_ptr<LevelFile> file;
  std::unique_ptr<Image> ring;
  DrainedImage image;
};

// An image that has no seal yet: it is read twice.
Result<DrainedImage> seal_ring(const SealedHeader& header, const ReadBytes& read) {
  DrainedImage image{{header, {}}, nullptr};
  std::vector<std::byte> chunk;
  for (std::uint64_t at = 0; at < header.payload_bytes; at += sealed_chunk_bytes) {
    chunk.resize(std::min(sealed_chunk_bytes, header.payload_bytes - at));
    PERDURE_TRY(read(at, chunk));
    image.seal.checksums.push_back(crc64(chunk.data(), chunk.size()));
  }
  image.read = [read, rank = header.rank, checksums = image.seal.checksums](
                   std::uint64_t offset, std::span<std::byte> out) -> Status {
    PERDURE_TRY(read(offset, out));
    if (crc64(out.data(), out.size()) == checksums[offset / sealed_chunk_bytes]) {
      return Status::success();
    }
    return Status(Code::damaged, "the file of rank ", rank, " was changed while it was drained");
  };
  return image;
}

// What this node has of one rank.
class HeldRank {
 public:
  static Result<HeldRank> open(const Directory& pool, const JobRecord& job, std::uint32_t rank,
                               Trust trust, bool is_locked = false);

  std::uint32_t rank() const { return rank_; }
  // What the ring has lost, for people; or "".
  const std::string& damage() const { return judgement_.damage; }
  const JobId& lineage() const { return region_.identity.lineage; }
  // What of the ring has its files elsewhere, for people; or "".
  const std::string& left_out() const { return left_out_; }
  std::set<VersionId> versions() const;
  Result<HeldVersion> read(const JobRecord& job, VersionId id) const;

 private:
  HeldRank(Directory pool, std::uint32_t rank, Trust trust)
      : pool_(std::move(pool)), rank_(rank), trust_(trust) {}
  void find_ring_versions();
  Status find_images(const JobRecord& job);
  bool may_be_drained(VersionId id) const;
  void leave_out_files();
  Status check_files(VersionId id) const;

  Directory pool_;
  std::uint32_t rank_;
  Trust trust_;
  FileHandle lock_;
  std::unique_ptr<Device> device_;
  Region region_;
  std::vector<SlotView> slots_;
  Judgement judgement_;
  std::string left_out_;
  std::map<VersionId, std::uint32_t> ring_;  // slot of each
  std::map<VersionId, LevelFileName> images_;
};

Result<HeldRank> HeldRank::open(const Directory& pool, const JobRecord& job, std::uint32_t rank,
                                Trust trust, bool is_locked) {
  PERDURE_TRY_ASSIGN(auto own, Directory::open(pool.path(), trust));
  HeldRank held(std::move(own), rank, trust);
  const std::string path = pool.path_of(rank_file_name(rank));
  PERDURE_TRY_ASSIGN(held.lock_, pool.open_file(rank_file_name(rank), FileAccess::read));
  if (!is_locked) PERDURE_TRY(lock_file(held.lock_.fd(), path, {.wait_ms = 0}));
  PERDURE_TRY_ASSIGN(
      held.device_,
      open_file_device(path, {.read_only = true, .may_be_cut = true, .trust = trust}));
  PERDURE_TRY_ASSIGN(held.region_, check_region(*held.device_));
  const RegionIdentity& identity = held.region_.identity;
  if (!(identity.job_id == job.job_id) || identity.rank != rank || identity.ranks != job.ranks) {
    return Status(Code::foreign, path, " is rank ", identity.rank, " of job ",
                  job_id_text(identity.job_id), ": swapped or copied from another pool");
  }
  held.slots_ = Slots(*held.device_, held.region_).read_all();
  held.judgement_ = judge_slots(held.slots_);
  held.find_ring_versions();
  PERDURE_TRY(held.find_images(job));
  held.leave_out_files();
  return held;
}

// The head and what it was made from, as far as the ring has it.
void HeldRank::find_ring_versions() {
  if (!judgement_.damage.empty()) return;
  const std::uint64_t slots = region_.geometry.slots;
  const Offer* offer = judgement_.find(judgement_.head);
  for (; offer != nullptr && offer->version != 0; offer = judgement_.find(offer->parent)) {
    const bool weak = offer->version + slots <= judgement_.next();  // commit.cpp, pool.I5
    if (offer->reopened || (weak && !offer->checkable)) break;
    ring_.emplace(VersionId{offer->incarnation, offer->version}, offer->slot);
  }
}

bool HeldRank::may_be_drained(VersionId id) const {
  if (!judgement_.damage.empty() || ring_.contains(id)) return true;
  return ring_.empty() ? id.version <= judgement_.head
                       : id.version < ring_.begin()->first.version;  // made before all of them
}

Status HeldRank::find_images(const JobRecord& job) {
  PERDURE_TRY_ASSIGN(const auto names, pool_.names());
  for (const std::string& name : names) {
    const auto parsed = parse_level_file_name(name);
    if (!parsed || parsed->kind != SealedKind::image || parsed->rank != rank_) continue;
    const auto file = LevelFile::open(pool_, *parsed, trust_, true);
    if (!file.ok()) return file.status();
    const SealedHeader& header = file.value().header();
    JobRecord own = job;
    own.lineage = lineage();
    if (!file.value().whole() || !same_lineage(header.job, own) || !may_be_drained(header.id)) {
      continue;
    }
    images_.emplace(header.id, *parsed);
  }
  return Status::success();
}

std::set<VersionId> HeldRank::versions() const {
  std::set<VersionId> all;
  for (const auto& [id, slot] : ring_) all.insert(id);
  for (const auto& [id, name] : images_) all.insert(id);
  return all;
}

// joined_files.hpp, levels.K5: a version in the ring has no share of cached files, as images have.
Status HeldRank::check_files(VersionId id) const {
  const Status without(Code::unsupported,
                       "cached files are committed with it, and only images have them: start the "
                       "job again, or recover the files (perdure cache recover ",
                       pool_.path(), ")");
  for (const PartFact& part : find_group_parts(pool_, region_.identity.job_id.words, trust_)) {
    if (part.in_use) return without;
  }
  if (region_.identity.image_version != id.version) return Status::success();
  for (const auto& [image_id, name] : images_) {
    if (image_id.version != id.version) continue;
    PERDURE_TRY_ASSIGN(const auto file, LevelFile::open(pool_, name, trust_, true));
    PERDURE_TRY_ASSIGN(const auto contents, parse_image(file.payload()));
    if (!contents.shares.empty()) return without;
  }
  return Status::success();
}

void HeldRank::leave_out_files() {
  for (auto it = ring_.begin(); it != ring_.end();) {
    const Status whole = check_files(it->first);
    if (whole.ok()) {
      ++it;
      continue;
    }
    left_out_ = "version " + std::to_string(it->first.version) +
                " in its ring is left out: " + whole.message();
    it = ring_.erase(it);
  }
}

Result<HeldVersion> HeldRank::read(const JobRecord& job, VersionId id) const {
  HeldVersion held;
  if (const auto name = images_.find(id); name != images_.end()) {
    PERDURE_TRY_ASSIGN(auto file, LevelFile::open(pool_, name->second, trust_, true));
    held.file = std::make_unique<LevelFile>(std::move(file));
    PERDURE_TRY_ASSIGN(held.image, image_of_file(*held.file));
    return held;
  }
  const Catalogue& catalogue = *slots_[ring_.at(id)].body;
  PERDURE_TRY_ASSIGN(auto image, Image::of(*device_, region_.geometry, catalogue));
  for (const ArrayEntry& entry : catalogue.arrays) {
    PERDURE_TRY(verify_and_copy(*device_, entry, region_.geometry.block_bytes, nullptr, nullptr));
  }
  held.ring = std::make_unique<Image>(std::move(image));
  // What another program cut off meanwhile reads as zeros, also where there are no checksums.
  const auto read_ring = [this, ring = held.ring.get()](std::uint64_t offset,
                                                        std::span<std::byte> out) {
    PERDURE_TRY(ring->read(offset, out));
    return device_->check();
  };
  PERDURE_TRY_ASSIGN(
      held.image,
      seal_ring({SealedKind::image, job, rank_, id, held.ring->size_bytes()}, read_ring));
  return held;
}

Result<std::vector<HeldRank>> open_ranks(const Directory& pool, const JobRecord& job, Trust trust) {
  PERDURE_TRY_ASSIGN(const auto names, pool.names());
  std::set<std::uint32_t> there;
  for (const std::string& name : names) {
    const auto rank = rank_of_file(name);
    if (rank && *rank < job.ranks) there.insert(*rank);
  }
  if (there.empty()) {
    return Status(Code::not_found, pool.path(),
                  " holds no rank's file, so there is nothing to drain on this node");
  }
  std::vector<HeldRank> ranks;
  for (const std::uint32_t rank : there) {
    PERDURE_TRY_ASSIGN(auto held, HeldRank::open(pool, job, rank, trust));
    ranks.push_back(std::move(held));
  }
  return ranks;
}

// What all ranks here have, newest first, at most `count`.
std::vector<VersionId> common_versions(const std::vector<HeldRank>& ranks, std::size_t count) {
  std::set<VersionId> common = ranks.front().versions();
  for (const HeldRank& rank : ranks) {
    const std::set<VersionId> its = rank.versions();
    std::erase_if(common, [&](VersionId id) { return !its.contains(id); });
  }
  std::vector<VersionId> newest(common.rbegin(), common.rend());
  newest.resize(std::min(newest.size(), count));
  return newest;
}

class PoolDrain {
 public:
  PoolDrain(PoolDrainReport& report, const std::vector<HeldRank>& ranks,
            const PoolDrainOptions& options)
      : report_(report), ranks_(ranks), options_(options) {}

  Status run();

 private:
  Status drain(PoolDrainVersion& version, std::uint64_t versions_left);
  Status write(PoolDrainVersion& version, std::uint64_t versions_left,
               const LevelDirectory& directory, const ManifestWriter& there);
  Status note_written(PoolDrainVersion& version, std::uint64_t bytes);

  PoolDrainReport& report_;
  const std::vector<HeldRank>& ranks_;
  const PoolDrainOptions& options_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

Status PoolDrain::note_written(PoolDrainVersion& version, std::uint64_t bytes) {
  version.written = true;
  done_ += bytes;
  if (!options_.progress || options_.progress(std::min(done_, total_), total_)) {
    return Status::success();
  }
  report_.stopped = true;
  return {Code::busy, "the drain was stopped"};
}

// What the level lacks: files of before a rank was moved to this node have others of its ranks.
Status PoolDrain::write(PoolDrainVersion& version, std::uint64_t versions_left,
                        const LevelDirectory& directory, const ManifestWriter& there) {
  std::vector<HeldVersion> held;
  for (const HeldRank& rank : ranks_) {
    if (there.has(rank.rank())) continue;
    PERDURE_TRY_ASSIGN(auto one, rank.read(report_.job, version.id));
    version.bytes += one.image.seal.header.payload_bytes;
    held.push_back(std::move(one));
  }
  if (held.empty()) return Status::success();
  std::vector<DrainedImage> images;
  for (HeldVersion& one : held) images.push_back(std::move(one.image));
  total_ = done_ + versions_left * version.bytes;  // they are about the same
  return write_node_file(directory, report_.job, version.id, images,
                         [&](std::uint64_t bytes) { return note_written(version, bytes); });
}

Status PoolDrain::drain(PoolDrainVersion& version, std::uint64_t versions_left) {
  PERDURE_TRY_ASSIGN(const auto directory,
                     make_version(report_.place, lineage_of(report_.job), version.id));
  ManifestWriter manifest(report_.place, report_.job, version.id);
  const auto before = manifest.try_write();  // a damaged file is made anew
  if (!before.ok() && before.status().code() != Code::damaged) return before.status();
  version.complete = before.ok() && before.value();
  if (version.complete) return Status::success();
  PERDURE_TRY(write(version, versions_left, directory, manifest));
  PERDURE_TRY_ASSIGN(version.complete, manifest.try_write());
  version.missing = version.complete ? 0 : manifest.missing();
  return Status::success();
}

Status PoolDrain::run() {
  PERDURE_TRY_ASSIGN(const auto found, find_versions(report_.place, lineage_of(report_.job)));
  const auto& manifests = found.manifests;
  report_.problems.insert(report_.problems.end(), found.problems.begin(), found.problems.end());
  std::uint64_t versions_left = report_.versions.size();
  for (PoolDrainVersion& version : report_.versions) {
    const std::uint64_t left = versions_left--;
    if (report_.stopped) break;
    for (const HeldRank& rank : ranks_) version.ranks.push_back(rank.rank());
    version.complete = std::ranges::find(manifests, version.id, &Manifest::id) != manifests.end();
    if (version.complete) continue;
    const Status drained = drain(version, left);
    if (!drained.ok()) version.problem = drained.message();
    version.written = version.written && drained.ok();
  }
  return remove_old_versions(report_.place, lineage_of(report_.job), options_.keep);
}

}  // namespace

Result<PoolDrainReport> drain_pool(const std::string& directory, const std::string& level,
                                   const PoolDrainOptions& options) {
  PERDURE_TRY_ASSIGN(const auto pool, Directory::open(directory, options.trust));
  PoolDrainReport report;
  PERDURE_TRY_ASSIGN(report.job, read_job_record(pool));
  const auto upper = LevelDirectory::open(level);
  if (upper.status().code() == Code::not_found) {
    return Status(Code::not_found, level, " does not exist; make it, or mount what it is on");
  }
  if (!upper.ok()) return upper.status();
  report.place = place_of_pool(level, directory);
  PERDURE_TRY_ASSIGN(const auto ranks, open_ranks(pool, report.job, options.trust));
  report.job.lineage = ranks.front().lineage();
  for (const HeldRank& rank : ranks) {
    if (rank.lineage() != report.job.lineage) {
      return Status(Code::foreign, directory, ": the files of ranks ", ranks.front().rank(),
                    " and ", rank.rank(),
                    " belong to different runs of the job; start the job on its nodes, which takes "
                    "the one that counts");
    }
    if (!rank.left_out().empty()) {
      report.problems.push_back("rank " + std::to_string(rank.rank()) + ": " + rank.left_out());
    }
    if (rank.damage().empty()) continue;
    report.problems.push_back("rank " + std::to_string(rank.rank()) +
                              ": its ring is left out: " + rank.damage());
  }
  const std::size_t count = std::max<std::size_t>(options.keep, versions_min);
  for (const VersionId id : common_versions(ranks, count)) {
    report.versions.emplace_back().id = id;
  }
  if (report.versions.empty()) return report;
  PERDURE_TRY(note_job(report.place, report.job));
  PERDURE_TRY(PoolDrain(report, ranks, options).run());
  return report;
}

Status drain_rank(const std::string& directory, const JobRecord& job, std::uint32_t rank,
                  VersionId id, const std::string& place, Trust trust) {
  PERDURE_TRY_ASSIGN(const auto pool, Directory::open(directory, trust));
  PERDURE_TRY_ASSIGN(const HeldRank held, HeldRank::open(pool, job, rank, trust, true));
  if (!held.versions().contains(id)) {
    return Status(Code::damaged, pool.path_of(rank_file_name(rank)), " does not hold version ",
                  id.version, " whole", held.damage().empty() ? "" : ": " + held.damage(),
                  held.left_out().empty() ? "" : "; " + held.left_out());
  }
  PERDURE_TRY_ASSIGN(HeldVersion version, held.read(job, id));
  PERDURE_TRY_ASSIGN(const auto target, make_version(place, lineage_of(job), id));
  const DrainedImage images[] = {std::move(version.image)};
  return write_node_file(target, job, id, images, nullptr);
}

}  // namespace perdure
