// SPDX-License-Identifier: BSD-3-Clause
//
// Targets: the file of a rank (region, slots, catalogue, arrays), opened as an application does;
// the directory of a pool of two ranks, looked at as `perdure pool` does; and the job record.
#include <algorithm>
#include <cstring>
#include <map>

#include "memory_device.hpp"
#include "pool/inspect.hpp"
#include "pool/job_record_format.hpp"
#include "pool/judgement.hpp"
#include "pool/pool.hpp"
#include "pool_image.hpp"
#include "scratch_files.hpp"
#include "targets.hpp"

namespace perdure::fuzz {
namespace {

constexpr unsigned raw = 1, older = 2, lineage = 4, restores_first = 8, opens_late = 16,
                   compares = 32, drops = 64, ignores = 128;

Bytes repaired(std::span<const std::byte> bytes, unsigned how) {
  Bytes image(bytes.begin(), bytes.end());
  if (image.size() > MemoryDevice::bytes_max / 2) image.resize(MemoryDevice::bytes_max / 2);
  repair_image(image, (how & raw) != 0       ? Repair::nothing
                      : (how & lineage) != 0 ? Repair::lineage
                                             : Repair::checksums);
  return image;
}

// The arrays and scalars that an application of this pool would know of: those of a slot.
struct Application {
  std::vector<ArrayEntry> arrays;
  std::map<std::string, Bytes> scalars;
  std::vector<VersionedArray*> open;

  void learn(const std::vector<SlotView>& slots, unsigned which) {
    if (slots.empty() || !slots[which % slots.size()].body) return;
    const Catalogue& body = *slots[which % slots.size()].body;
    arrays.assign(body.arrays.begin(), body.arrays.end());
    for (const ScalarEntry& scalar : body.scalars) scalars[scalar.name] = scalar.bytes;
  }
  void open_all(Pool& pool, unsigned how) {
    for (const ArrayEntry& entry : arrays) {
      ArrayOptions options;
      options.of_program = (how & older) == 0;
      options.part = entry.part;
      options.marks = entry.shape.mode == ArrayMode::log && (how & compares) == 0;
      options.compare = entry.shape.mode == ArrayMode::log && (how & compares) != 0;
      auto opened = pool.open_array(entry.name, entry.shape, options);
      if (opened.ok()) open.push_back(opened.value());
    }
    const auto fresh = pool.open_array("new", {ArrayType::int32, ArrayMode::copy, true, {33}}, {});
    if (fresh.ok()) open.push_back(fresh.value());
    for (auto& [name, bytes] : scalars) (void)pool.bind_scalar(name, bytes.data(), bytes.size());
  }
  // Where there is no room for it, all is as before.
  void resize(Pool& pool, unsigned value) {
    if (!open.empty() && pool.close_array(open.back(), true).ok()) open.pop_back();
    for (VersionedArray* array : open) {
      std::vector<std::uint64_t> extents = array->entry().shape.extents;
      extents.front() = (extents.front() * 7 + value) % 101;
      (void)pool.resize_array(*array, extents, nullptr);
    }
  }
  void change(unsigned value) {
    for (VersionedArray* array : open) {
      if (array->size_bytes() == 0) continue;
      std::memset(array->working(), static_cast<int>(value), array->size_bytes());
      if (array->mode() == ArrayMode::log) (void)array->mark(0, array->size_bytes());
    }
    for (auto& [name, bytes] : scalars) std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});
  }
};

// Whoever got through the restart can rely on the pool: what is committed is given back.
void check_committed(std::span<const std::byte> image, std::uint64_t version) {
  auto device = std::make_unique<MemoryDevice>(image);
  auto region = check_region(*device);
  PERDURE_ASSERT(region.ok());
  SoloGroup group;
  auto pool = Pool::attach(std::move(device), region.value(), group, {});
  PERDURE_ASSERT(pool.ok());
  PERDURE_ASSERT(pool.value()->status().version == version);
}

bool use_pool(Pool& pool, const MemoryDevice& device, Application& application, unsigned how,
              unsigned which) {
  if ((how & opens_late) == 0) application.open_all(pool, how);
  const std::vector<VersionInfo> before = pool.versions();
  if ((how & restores_first) != 0 && !before.empty()) {
    (void)pool.restore(before[which % before.size()].version);
  }
  if (!pool.restarted() && !pool.restart().ok()) return false;
  if ((how & opens_late) != 0) application.open_all(pool, how);
  for (unsigned commit = 0; commit < 3; ++commit) {
    if ((which & 8) != 0) application.resize(pool, commit);
    application.change(commit + 7);
    const auto committed = pool.commit();
    if (!committed.ok()) return false;
    check_committed(device.image(), committed.value());
    const std::vector<VersionInfo> held = pool.versions();
    if (commit != 0 || held.empty()) continue;
    (void)pool.delete_version(held.front().version + 1);
    if ((how & drops) != 0) (void)pool.delete_version(held.back().version);
    if ((how & ignores) != 0) (void)pool.restore(held[which % held.size()].version);
  }
  return true;
}

bool run_pool(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  const unsigned how = choices.take(), which = choices.take();
  const Bytes image = repaired(choices.rest(), how);
  auto device = std::make_unique<MemoryDevice>(image);
  auto region = check_region(*device);
  if (!region.ok()) return false;
  Application application;
  application.learn(Slots(*device, region.value()).read_all(), which >> 4);
  const MemoryDevice& medium = *device;
  SoloGroup group;
  PoolOptions options;
  options.allow_older = (how & older) != 0;
  auto pool = Pool::attach(std::move(device), region.value(), group, options);
  return pool.ok() && use_pool(*pool.value(), medium, application, how, which);
}

std::vector<Bytes> pool_seeds() {
  std::vector<Bytes> seeds;
  for (const unsigned how : {0U, older | lineage, lineage | opens_late | drops,
                             lineage | restores_first | compares, older | ignores}) {
    for (const ImageRequest& request :
         {ImageRequest{}, ImageRequest{.slots = 2, .commits = 1},
          ImageRequest{.slots = 5, .commits = 7, .restores = true},
          ImageRequest{.slots = 4, .commits = 3, .checksums = false},
          ImageRequest{.slot_bytes = 256}, ImageRequest{.slots = 4, .commits = 5, .sizes = true},
          ImageRequest{.slots = 5, .commits = 7, .restores = true, .slot_bytes = 256}}) {
      Bytes seed = {static_cast<std::byte>(how), static_cast<std::byte>(request.sizes ? 9U : 1U)};
      const Bytes image = make_image(request);
      seed.insert(seed.end(), image.begin(), image.end());
      seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

// A pool of two ranks: a job record, and two files. The input has the length of the first.
bool run_inspect(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  const unsigned how = choices.take();
  const std::size_t first = choices.take() | choices.take() << 8;
  const auto begin = choices.rest().first(std::min(sizeof(JobRecordFormat), choices.rest().size()));
  Bytes record(begin.begin(), begin.end());
  const auto files = choices.rest().subspan(record.size());
  if ((how & raw) == 0) repair_job_record(record);
  const std::size_t cut = std::min(first, files.size());
  static const ScratchFiles scratch;
  scratch.write("job", record);
  scratch.write("rank-00000", repaired(files.first(cut), how));
  scratch.write("rank-00001", repaired(files.subspan(cut), how));
  const auto report = inspect_pool(scratch.path(), {.verify_data = (how & older) != 0});
  if (!report.ok()) return false;
  (void)report.value().worst();
  if (!report.value().version || report.value().ranks.empty()) return false;
  for (const RankReport& rank : report.value().ranks) {
    if (!rank.catalogue) continue;
    for (const ArrayEntry& entry : rank.catalogue->arrays) {
      (void)dump_array(scratch.path(), rank.rank, entry.name);
    }
  }
  return true;
}

std::vector<Bytes> inspect_seeds() {
  std::vector<Bytes> seeds;
  for (const unsigned how : {0U, older | lineage}) {
    for (const unsigned ahead : {0U, 1U}) {
      const Bytes record = make_job_record(2);
      const Bytes zero = make_image({.rank = 0, .ranks = 2, .commits = 3 + ahead});
      const Bytes one = make_image({.rank = 1, .ranks = 2, .commits = 3});
      Bytes seed = {static_cast<std::byte>(how), static_cast<std::byte>(zero.size() & 0xff),
                    static_cast<std::byte>(zero.size() >> 8)};
      for (const Bytes* part : {&record, &zero, &one}) {
        seed.insert(seed.end(), part->begin(), part->end());
      }
      seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

bool run_job_record(std::span<const std::byte> bytes) {
  Bytes record(bytes.begin(), bytes.end());
  repair_job_record(record);
  static const ScratchFiles scratch;
  scratch.write("job", record);
  const auto directory = Directory::open(scratch.path());
  const auto read = directory.ok() ? read_job_record(directory.value()) : directory.status();
  if (!read.ok()) return false;
  PERDURE_ASSERT(read.value().ranks > 0 && read.value().job_name.size() < 64);
  const auto report = inspect_pool(scratch.path(), {});
  PERDURE_ASSERT(report.ok() && report.value().ranks.empty());
  return true;
}

std::vector<Bytes> job_record_seeds() {
  return {make_job_record(1), make_job_record(2), make_job_record(20'000'000)};
}

}  // namespace

const Target pool_target = {"pool", run_pool, pool_seeds};
const Target inspect_target = {"inspect", run_inspect, inspect_seeds};
const Target job_record_target = {"job_record", run_job_record, job_record_seeds};

}  // namespace perdure::fuzz
