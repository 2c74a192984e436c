// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose ranks are threads, with a pool on each of its nodes, and a level.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/thread_group.hpp"
#include "levels/drain.hpp"
#include "levels/manifest.hpp"
#include "levels/sealed_format.hpp"
#include "pmem/file_device.hpp"
#include "pool/image.hpp"
#include "pool/pool_directory.hpp"
#include "pool/slots.hpp"
#include "temporary_directory.hpp"

namespace perdure {

class DrainedJob {
 public:
  // The node of each rank; `elements` of 8 bytes in its array, rank r has r more.
  explicit DrainedJob(std::vector<std::uint32_t> nodes, std::uint64_t elements = 3000)
      : nodes_(std::move(nodes)), elements_(elements) {
    options_.job_name = "test";
    options_.keep = 3;
    set_level(base_ / "level");
  }
  // Instead of one in files.
  void set_level(const std::string& path) {
    level_ = path;
    place_ = level_ + "/pool";
  }

  const std::string& base() const { return base_.path(); }
  const std::string& level() const { return level_; }
  const std::string& place() const { return place_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint64_t elements_of(std::uint32_t rank) const { return elements_ + rank; }
  std::string pool(std::uint32_t node) const {
    return base_ / ("node" + std::to_string(node) + "/pool");
  }
  std::vector<std::uint32_t> ranks_on(std::uint32_t node) const {
    std::vector<std::uint32_t> there;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      if (nodes_[rank] == node) there.push_back(rank);
    }
    return there;
  }
  JobRecord record() const {
    return read_job_record(Directory::open(pool(nodes_[0])).take()).value();
  }
  DrainRequest request(std::uint32_t node) const {
    DrainRequest request;
    request.pool = pool(node);
    request.place = place_;
    request.job = record();
    request.ranks = ranks_on(node);
    request.writes_manifests = node == 0;
    return request;
  }
  static std::int64_t value(std::uint32_t rank, std::uint64_t version) {
    return static_cast<std::int64_t>(1000 * rank + version);
  }

  // Starts the job, commits so many versions, and ends it. `before`: of each rank, after restart.
  void run(int commits, const std::function<void(Pool&)>& before = {}) {
    ThreadJob job(nodes_);
    job.run([&](ThreadGroup& group) {
      const Status status = run_rank(group, commits, before);
      EXPECT_TRUE(status.ok()) << status.message();
    });
  }
  // An image of a version for each rank, in file `slot` of its node, as a job makes them.
  void make_images(std::uint64_t version, std::uint32_t slot) {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) make_image(rank, version, slot);
  }
  void make_image(std::uint32_t rank, std::uint64_t version, std::uint32_t slot) {
    const auto directory = Directory::open(pool(nodes_[rank])).take();
    const auto device = open_rank(rank);
    const Region region = check_region(*device).value();
    const Slots slots(*device, region);
    const SlotView view = slots.read(slots.slot_of(version));
    ASSERT_TRUE(view.body && view.body->version == version);
    const Image image = Image::of(*device, region.geometry, *view.body).take();
    LevelFile file =
        LevelFile::open_or_make(directory, {SealedKind::image, rank, slot}, Trust::own).take();
    ASSERT_TRUE(file.begin(image.size_bytes()).ok());
    std::vector<std::byte> chunk(sealed_chunk_bytes);
    for (std::uint64_t at = 0; at < image.size_bytes(); at += sealed_chunk_bytes) {
      const auto part =
          std::span(chunk).first(std::min(sealed_chunk_bytes, image.size_bytes() - at));
      ASSERT_TRUE(image.read(at, part).ok());
      file.write(at, part);
    }
    ASSERT_TRUE(file.complete({SealedKind::image,
                               record(),
                               rank,
                               {view.body->incarnation, version},
                               image.size_bytes()})
                    .ok());
  }
  VersionId id_of(std::uint64_t version) const {
    const auto device = open_rank(0);
    const Slots slots(*device, check_region(*device).value());
    return {slots.read(slots.slot_of(version)).body->incarnation, version};
  }
  // Why what the manifest gives for every rank is not the version that was committed; or "".
  std::string wrong_in(const Manifest& manifest) const {
    std::filesystem::create_directory(base_ / "back");
    std::filesystem::permissions(base_ / "back", std::filesystem::perms::owner_all);
    std::string wrong;
    for (std::uint32_t rank = 0; rank < ranks() && wrong.empty(); ++rank) {
      wrong = wrong_of_rank(manifest, rank);
    }
    std::filesystem::remove_all(base_ / "back");
    return wrong;
  }

 private:
  std::unique_ptr<Device> open_rank(std::uint32_t rank) const {
    FileDeviceOptions options;
    options.read_only = true;
    return open_file_device(rank_file_path(pool(nodes_[rank]), rank), options).take();
  }
  Status run_rank(ThreadGroup& group, int commits, const std::function<void(Pool&)>& before) {
    PERDURE_TRY(Directory::make(split_path(pool_of(group)).directory).status());
    PERDURE_TRY_ASSIGN(auto pool, open_pool(pool_of(group), group, options_));
    const ArrayShape shape{ArrayType::int64, ArrayMode::copy, true, {elements_of(group.rank())}};
    PERDURE_TRY_ASSIGN(VersionedArray* const array, pool->open_array("u", shape, {}));
    std::uint64_t iteration = 0;
    PERDURE_TRY(pool->bind_scalar("iteration", &iteration, sizeof iteration));
    PERDURE_TRY(pool->restart().status());
    if (before) before(*pool);
    for (int i = 0; i < commits; ++i) {
      iteration = pool->next_version();
      auto* const words = reinterpret_cast<std::int64_t*>(array->working());
      std::fill_n(words, elements_of(group.rank()), value(group.rank(), iteration));
      PERDURE_TRY(pool->commit().status());
    }
    return Status::success();
  }
  std::string pool_of(const ThreadGroup& group) const { return pool(nodes_[group.rank()]); }
  std::string wrong_of_rank(const Manifest& manifest, std::uint32_t rank) const {
    const auto back = Directory::open(base_ / "back").take();
    LevelFile file = LevelFile::open_or_make(back, {SealedKind::image, rank, 0}, Trust::own).take();
    const Status read = read_image(manifest, rank, file);
    if (!read.ok()) return read.message();
    const auto contents = parse_image(file.payload());
    if (!contents.ok()) return contents.status().message();
    const Catalogue& catalogue = contents.value().catalogue;
    if (catalogue.version != manifest.id.version) return "another version";
    const auto* const words = reinterpret_cast<const std::int64_t*>(
        file.payload().data() + contents.value().copy_offsets.at(0));
    for (std::uint64_t i = 0; i < elements_of(rank); ++i) {
      if (words[i] != value(rank, manifest.id.version)) {
        return "element " + std::to_string(i) + " of rank " + std::to_string(rank) + " is " +
               std::to_string(words[i]);
      }
    }
    return "";
  }

  std::vector<std::uint32_t> nodes_;
  std::uint64_t elements_;
  perdure_test::TemporaryDirectory base_{perdure_test::on_disk()};
  std::string level_;
  std::string place_;
  OpenOptions options_;
};

}  // namespace perdure
