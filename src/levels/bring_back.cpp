// SPDX-License-Identifier: BSD-3-Clause
#include "levels/bring_back.hpp"

#include <algorithm>
#include <set>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "pmem/file_device.hpp"
#include "pool/image.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20U;
constexpr const char* damaged_suffix = ".damaged";

// A node that takes the place of a lost one may have nothing of the path. That it has no slip is
// known from the ranks that have the pool.
Result<Directory> make_pool_directory(const std::string& path, Trust trust) {
  const std::string above = split_path(path).directory;
  const bool absolute = above.starts_with('/');
  const auto made =
      Directory::make_below(absolute ? "/" : ".", above.substr(absolute ? 1 : 0), Trust::anyone);
  return made.ok() ? Directory::make(path, trust) : made.status();
}

std::string ranks_text(const std::set<std::uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed(ranks);
}

Status send_all(Group& group, std::uint32_t to, std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  PERDURE_TRY(group.send(to, std::as_bytes(std::span(&size, 1))));
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), chunk_bytes))) {
    PERDURE_TRY(group.send(to, bytes.first(std::min<std::size_t>(bytes.size(), chunk_bytes))));
  }
  return Status::success();
}

// Gives each piece to `store`, whose failure does not end the reception: the sender waits for it.
template <typename Store>
Status receive_all(Group& group, std::uint32_t from, const Status& ready, const Store& store) {
  std::uint64_t size = 0;
  PERDURE_TRY(group.receive(from, std::as_writable_bytes(std::span(&size, 1))));
  Status stored = ready;
  std::vector<std::byte> chunk(std::min(size, chunk_bytes));
  for (std::uint64_t at = 0; at < size; at += chunk.size()) {
    chunk.resize(std::min(chunk_bytes, size - at));
    PERDURE_TRY(group.receive(from, chunk));
    if (stored.ok()) stored = store(at, std::span<const std::byte>(chunk), size);
  }
  return stored;
}

}  // namespace

Result<bool> BringBack::exists() const {
  const auto directory = Directory::open(directory_, trust_);
  const bool unusable = !directory.ok() && directory.status().code() != Code::not_found;
  std::uint64_t words[] = {directory.ok() && directory.value().holds(job_record_name) ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, unusable ? directory.status() : Status::success(), words));
  return words[0] != 0;
}

Status BringBack::make_directory() const {
  return make_pool_directory(directory_, trust_).status();
}

Result<std::uint64_t> BringBack::new_generation(const Census& census, std::uint64_t above) const {
  const std::uint64_t now_ms = wall_clock_ns() / 1'000'000;
  std::uint64_t words[] = {std::max(now_ms << chance_bits, above + 1)};
  for (const PoolFileFact& file : census.files) words[0] = std::max(words[0], file.age() + 1);
  for (const LevelFileFact& file : census.levels) {
    words[0] = std::max(words[0], file.id.incarnation + 1);
  }
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  return words[0] + chance_;
}

// levels.B4. Of this node. Code::busy names who uses it, not_found.
Result<FileHandle> BringBack::lock(std::uint32_t rank) const {
  const std::string path = rank_file_path(directory_, rank);
  PERDURE_TRY_ASSIGN(auto file, open_file(path, FileAccess::read, trust_));
  PERDURE_TRY(lock_file(file.fd(), path, {.wait_ms = lock_wait_ms_}));
  return file;
}

Status BringBack::send_file(std::uint32_t of_rank) const {
  const auto locked = lock(of_rank);
  if (!locked.ok()) {
    PERDURE_TRY(send_all(group_, of_rank, {}));
    return locked.status();
  }
  const auto device =
      open_file_device(rank_file_path(directory_, of_rank), {.read_only = true, .trust = trust_});
  if (device.ok()) {
    return send_all(group_, of_rank, {device.value()->base(), device.value()->size_bytes()});
  }
  PERDURE_TRY(send_all(group_, of_rank, {}));
  return device.status();
}

Status BringBack::receive_file(std::uint32_t from, std::uint64_t generation) const {
  const std::string name = rank_file_name(group_.rank());
  const std::string fresh = fresh_rank_file_name(group_.rank());
  std::unique_ptr<Device> device;
  const auto directory = make_pool_directory(directory_, trust_);
  Status ready = directory.status();
  if (directory.ok()) ready = directory.value().remove_file(fresh);
  if (ready.ok()) {
    auto made =
        open_file_device(directory.value().path_of(fresh), {.create = true, .trust = trust_});
    ready = made.status();
    if (made.ok()) device = made.take();
  }
  const auto store = [&](std::uint64_t at, auto bytes, auto size) {
    if (at == 0) PERDURE_TRY(device->resize(size));
    device->copy(at, bytes.data(), bytes.size());
    return Status::success();
  };
  PERDURE_TRY(receive_all(group_, from, ready, store));
  PERDURE_TRY(device->fence());
  PERDURE_TRY(set_generation(*device, generation));
  device.reset();
  return directory.value().rename_file(fresh, name);
}

// In place of that of other ranks, whose pool had been begun and was lost (other_ranks.hpp).
Status BringBack::note_job_here(const JobRecord& job) const {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  const auto there = read_job_record(directory);
  const bool of_others = there.ok() && there.value().ranks != job.ranks;
  if (directory.holds(job_record_name) && !of_others) return Status::success();
  return write_job_record(directory, job, group_.rank());
}

Result<std::string> BringBack::move_files(const Census& census) const {
  const auto files = census.files_in_use();
  for (std::uint32_t rank = 0; rank < files.size(); ++rank) {
    if (files[rank] != nullptr) continue;
    return Status(Code::not_found, "the file of rank ", rank, " is on no node of this job");
  }
  PERDURE_TRY_ASSIGN(const auto generation, new_generation(census));
  std::set<std::uint32_t> moved;
  Status local;
  for (std::uint32_t rank = 0; rank < files.size(); ++rank) {
    const std::uint32_t from = files[rank]->at;
    if (census.near(from, rank)) continue;
    moved.insert(rank);
    Status step;
    if (group_.rank() == from) step = send_file(rank);
    if (group_.rank() == rank) step = receive_file(from, generation);
    if (local.ok()) local = step;
  }
  if (local.ok()) local = note_job_here(census.job);
  PERDURE_TRY(agree(group_, local));
  if (moved.empty()) return std::string();
  return "the files of " + ranks_text(moved) + " were on other nodes and were moved to theirs";
}

Status BringBack::check(const LevelFileFact& fact) const {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  PERDURE_TRY_ASSIGN(const auto file, LevelFile::open(directory, fact.name, trust_, true));
  if (file.whole() && file.header().id == fact.id) return file.verify();
  return Status(Code::damaged, file.path(), " does not hold version ", fact.id.version);
}

Result<LevelFile> BringBack::image_of(std::uint32_t rank, VersionId id) const {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  Status damage;
  for (std::uint32_t slot = 0; slot < level_files_max; ++slot) {
    auto file = LevelFile::open(directory, {SealedKind::image, rank, slot}, trust_);
    if (!file.ok() || !file.value().whole() || file.value().header().id != id) continue;
    damage = file.value().verify();
    if (damage.ok()) return file;  // a damaged one may lie beside the one that was made instead
  }
  if (!damage.ok()) return damage;
  return Status(Code::not_found, directory_, " holds no image of version ", id.version, " of rank ",
                rank);
}

// That the pool was made of, or that were made of it since, when it was protected.
std::vector<VersionId> BringBack::images_like(const Pool& pool) const {
  std::vector<VersionId> ids;
  const auto directory = Directory::open(directory_, trust_);
  for (std::uint32_t slot = 0; directory.ok() && slot < level_files_max; ++slot) {
    const auto file =
        LevelFile::open(directory.value(), {SealedKind::image, group_.rank(), slot}, trust_);
    if (!file.ok() || !file.value().whole()) continue;
    const SealedHeader& header = file.value().header();
    const VersionId id = header.id;
    if (header.job.job_id != pool.job_id() || id.version != pool.status().version) continue;
    if (id.incarnation != pool.image_incarnation() && id.incarnation <= pool.head_incarnation()) {
      continue;  // of another history
    }
    if (file.value().verify().ok()) ids.push_back(id);
  }
  std::ranges::sort(ids);
  return ids;
}

// When the pool is protected its source stays until what is made of it is whole on all ranks.
Result<VersionId> BringBack::image_behind(const Pool& pool) {
  const auto ids = images_like(pool);
  const VersionId source{pool.image_incarnation(), pool.status().version};
  const auto here = [&ids](VersionId id) { return std::ranges::find(ids, id) != ids.end(); };
  // Of the largest, of all ranks, the least.
  std::uint64_t words[] = {here(source) ? 0U : 1U,
                           ids.empty() ? ~std::uint64_t{0} : ~ids.back().incarnation};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  const VersionId chosen = words[0] == 0 ? source : VersionId{~words[1], source.version};
  std::uint64_t lacks[] = {here(chosen) ? 0U : 1U};
  PERDURE_TRY(agree_max(group_, Status::success(), lacks));
  if (lacks[0] == 0) return chosen;
  return Status(
      Code::not_found, "the images of version ", source.version,
      ", which have what is committed with the pool, are not all on the nodes of their ranks");
}

// The image belongs beside its guard, so that the other files stay free.
Result<LevelFile> BringBack::free_image(std::uint32_t rank, VersionId id) const {
  PERDURE_TRY_ASSIGN(const auto directory, make_pool_directory(directory_, trust_));
  const auto held = [&](SealedKind kind, std::uint32_t slot) {
    const auto file = LevelFile::open(directory, {kind, rank, slot}, trust_);
    const bool whole = file.ok() && file.value().whole();
    return whole ? file.value().header().id : VersionId{};
  };
  std::uint32_t best = 0;
  VersionId oldest{UINT64_MAX, UINT64_MAX};
  for (std::uint32_t slot = 0; slot < level_files_max; ++slot) {
    const VersionId image = held(SealedKind::image, slot);
    const VersionId age = held(SealedKind::guard, slot) == id ? VersionId{} : image;
    if (image == id || age >= oldest) continue;
    best = slot;
    oldest = age;
  }
  return LevelFile::open_or_make(directory, {SealedKind::image, rank, best}, trust_);
}

Status BringBack::move_image(const JobRecord& job, std::uint32_t from, std::uint32_t rank,
                             VersionId id) {
  if (group_.rank() == from) {
    const auto file = image_of(rank, id);
    PERDURE_TRY(
        send_all(group_, rank, file.ok() ? file.value().payload() : std::span<const std::byte>{}));
    const std::uint64_t checksum = file.ok() ? file.value().table_checksum() : 0;
    PERDURE_TRY(group_.send(rank, std::as_bytes(std::span(&checksum, 1))));
    return file.status();
  }
  if (group_.rank() != rank) return Status::success();
  auto file = free_image(id);
  std::uint64_t bytes = 0;
  const auto store = [&](std::uint64_t at, auto piece, auto size) {
    if (at == 0) PERDURE_TRY(file.value().begin(bytes = size));
    file.value().write(at, piece);
    return Status::success();
  };
  const Status received = receive_all(group_, from, file.status(), store);
  std::uint64_t checksum = 0;
  PERDURE_TRY(group_.receive(from, std::as_writable_bytes(std::span(&checksum, 1))));
  PERDURE_TRY(received);
  if (bytes == 0) return Status(Code::peer_failed, "rank ", from, " sent no image");
  if (file.value().table_checksum() != checksum) {  // levels.B4
    return Status(Code::damaged, "the image of version ", id.version, " of rank ", rank,
                  " was changed while rank ", from, " sent it");
  }
  return file.value().complete({SealedKind::image, job, rank, id, bytes});
}

Result<BringBack::Prepared> BringBack::prepare(const Census& census, const GroupRebuild& rebuild,
                                               VersionId id,
                                               const std::vector<std::uint32_t>& rebuilders) const {
  const GuardContents& contents = rebuild.files.contents;
  Prepared prepared;
  PERDURE_TRY_ASSIGN(const auto directory, make_pool_directory(directory_, trust_));
  for (const LevelFileFact& fact : census.levels) {
    const auto member = std::ranges::find(contents.members, fact.name.rank);
    if (fact.id != id || member == contents.members.end() || fact.at != group_.rank()) continue;
    const bool image = fact.name.kind == SealedKind::image;
    if (!image && fact.guard.members != contents.members) continue;
    PERDURE_TRY_ASSIGN(auto opened, LevelFile::open(directory, fact.name, trust_));
    auto file = std::make_unique<LevelFile>(std::move(opened));
    const auto index = static_cast<std::uint32_t>(member - contents.members.begin());
    prepared.held.push_back({index, image ? file.get() : nullptr, image ? nullptr : file.get()});
    prepared.open.push_back(std::move(file));
  }
  const auto mine = std::ranges::find(rebuilders, group_.rank());
  if (mine == rebuilders.end()) return prepared;
  const std::uint32_t member = rebuild.lost[static_cast<std::size_t>(mine - rebuilders.begin())];
  prepared.rank = contents.members[member];
  PERDURE_TRY_ASSIGN(auto image, free_image(prepared.rank, id));
  prepared.image_bytes = contents.image_bytes[member];
  PERDURE_TRY(image.begin(prepared.image_bytes));
  prepared.image = std::make_unique<LevelFile>(std::move(image));
  return prepared;
}

// What can fail on one rank alone comes before the agreement: nobody waits for its messages then.
Status BringBack::rebuild(const Census& census, const GroupRebuild& rebuild, const JobRecord& job,
                          VersionId id, const std::vector<std::uint32_t>& rebuilders) {
  auto prepared = prepare(census, rebuild, id, rebuilders);
  PERDURE_TRY(agree(group_, prepared.status()));
  LevelFile* const image = prepared.value().image.get();
  PERDURE_TRY(rebuild_images(group_, rebuild.files, rebuild.lost, rebuilders, prepared.value().held,
                             image));
  if (image == nullptr) return Status::success();
  return image->complete(
      {SealedKind::image, job, prepared.value().rank, id, prepared.value().image_bytes});
}

// One after the other: a rank of this job may have to make several.
Result<std::vector<std::uint32_t>> BringBack::rebuild_lost(const Census& census,
                                                           const RecoveryPlan& plan) {
  JobRecord job = census.job;
  job.lineage = plan.lineage;
  std::vector<std::uint32_t> at = plan.image_at;
  Status local;
  for (const GroupRebuild& group : plan.rebuilds) {
    for (const std::uint32_t member : group.lost) {
      GroupRebuild one = group;
      one.lost = {member};
      const std::uint32_t rank = group.files.contents.members[member];
      at[rank] = rank % group_.ranks();
      const Status step = rebuild(census, one, job, plan.id, {at[rank]});
      if (local.ok()) local = step;
    }
  }
  PERDURE_TRY(agree(group_, local));
  return at;
}

// levels.B2: every rank's new file is there.
Status BringBack::take_places(const JobRecord& job) const {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  const std::string name = rank_file_name(group_.rank());
  if (keep_damaged_ && directory.holds(name)) {
    PERDURE_TRY(directory.rename_file(name, name + damaged_suffix));
  }
  PERDURE_TRY(directory.rename_file(fresh_rank_file_name(group_.rank()), name));
  return note_job_here(job);
}

Status BringBack::use_own_images(const JobRecord& job, VersionId id, std::uint64_t generation) {
  auto replaced = lock(group_.rank());  // held until it has lost its name
  const auto make = [&]() -> Status {
    if (!replaced.ok() && replaced.status().code() == Code::busy) return replaced.status();
    PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
    PERDURE_TRY_ASSIGN(const auto image, own_image(id));
    const std::string fresh = fresh_rank_file_name(group_.rank());
    PERDURE_TRY(directory.remove_file(fresh));
    RegionIdentity identity{job.job_id, job.job_name, group_.rank(), job.ranks, generation};
    identity.lineage = lineage_of(job) == job.job_id ? JobId{} : job.lineage;
    PERDURE_TRY(make_file_of_image(directory.path_of(fresh), identity, image.payload(), trust_));
    return directory.sync();
  };
  PERDURE_TRY(agree(group_, make()));
  return agree(group_, take_places(job));
}

Result<std::string> BringBack::use_drained(const Manifest& manifest, std::uint64_t incarnation_max,
                                           const JobRecord& here) {
  const auto fetch = [&]() -> Status {
    PERDURE_TRY(make_pool_directory(directory_, trust_).status());
    PERDURE_TRY_ASSIGN(auto image, free_image(manifest.id));
    return read_image(manifest, group_.rank(), image);
  };
  PERDURE_TRY(agree(group_, fetch()));
  PERDURE_TRY_ASSIGN(const auto generation, new_generation({}, incarnation_max));
  JobRecord job = manifest.job;
  if (here.ranks != 0) job.generation = here.ranks == job.ranks ? here.generation : generation;
  PERDURE_TRY(use_own_images(job, manifest.id, generation));
  return sentence("version ", manifest.id.version, " was brought back from ", manifest.directory);
}

Result<std::string> BringBack::use_images(const Census& census, const JobId& lineage) {
  const auto plan = plan_recovery(census);
  if (!plan) {
    return Status(Code::not_found, "no version can be brought back: ", describe_holdings(census));
  }
  JobRecord job = census.job;
  job.lineage = plan->lineage;
  std::set<std::uint32_t> moved;
  std::set<std::uint32_t> rebuilt;
  Status local;
  for (std::uint32_t rank = 0; rank < census.job.ranks; ++rank) {
    const std::uint32_t from = plan->image_at[rank];
    if (from == no_rank || census.near(from, rank)) continue;
    moved.insert(rank);
    const Status step = move_image(job, from, rank, plan->id);
    if (local.ok()) local = step;
  }
  PERDURE_TRY(agree(group_, local));
  for (const GroupRebuild& group : plan->rebuilds) {
    std::vector<std::uint32_t> rebuilders;
    for (const std::uint32_t member : group.lost) {
      rebuilders.push_back(group.files.contents.members[member]);
    }
    rebuilt.insert(rebuilders.begin(), rebuilders.end());
    const Status step = rebuild(census, group, job, plan->id, rebuilders);
    if (local.ok()) local = step;
  }
  PERDURE_TRY(agree(group_, local));
  PERDURE_TRY_ASSIGN(const auto generation, new_generation(census));
  job.lineage = lineage;
  PERDURE_TRY(use_own_images(job, plan->id, generation));
  std::string sentence =
      "version " + std::to_string(plan->id.version) + " was brought back from images";
  if (!moved.empty()) sentence += "; those of " + ranks_text(moved) + " came from other nodes";
  if (!rebuilt.empty()) {
    sentence += "; those of " + ranks_text(rebuilt) + " were rebuilt from what other nodes kept";
  }
  return sentence;
}

}  // namespace perdure
