// SPDX-License-Identifier: BSD-3-Clause
//
// Files of a job that are damaged, on its nodes and in its drain: what a start refuses, takes and
// keeps (restart.hpp, levels.A8).
// ctest: LABELS truth COST 20
#include <fstream>

#include "levels/manifest.hpp"
#include "levels/node_file_format.hpp"
#include "levels/sealed_format.hpp"
#include "levels_of_jobs.hpp"
#include "pmem/file_device.hpp"
#include "pool/slot_format.hpp"
#include "pool/slots.hpp"

namespace perdure {
namespace {

void flip(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.peek();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

class Damage : public LevelsOfJobs {
 protected:
  Damage() {
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
  }
  // Version 4 is on the levels, and 7 in the pool.
  void make(const std::string& levels, ArrayMode mode = ArrayMode::copy) {
    mode_ = mode;
    levels_ = levels + ";every=4;patience=20s";
    const std::size_t drain = levels_.find("DRAIN");
    if (drain != std::string::npos) levels_.replace(drain, 5, "drain=" + node(9) + "/drain");
    ASSERT_EQ(start(4, 1), 0) << said_;
    ASSERT_EQ(start(3, 2), 0) << said_;
  }
  int start(std::uint64_t commits = 0, std::uint64_t mark = 0, bool allow_older = false,
            std::vector<std::uint32_t> nodes = {0, 1}) {
    testing::internal::CaptureStderr();
    const int code = run({.nodes = std::move(nodes),
                          .commits = commits,
                          .mark = mark,
                          .allow_older = allow_older,
                          .mode = mode_});
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string file_of_rank_0() const { return node(0) + "/pool/rank-00000"; }
  void damage(const std::string& what) const {
    const std::string path = file_of_rank_0();
    if (what == "truncated") return fs::resize_file(path, 100);
    if (what == "header") return flip(path, 112);
    const auto device = open_file_device(path, {.read_only = true}).take();
    const Region region = check_region(*device).value();
    const Slots slots(*device, region);
    const SlotView newest = slots.read(slots.slot_of(7));
    ASSERT_TRUE(newest.body && newest.body->version == 7);
    const ArrayEntry& array = *newest.body->arrays.begin();
    if (what == "data") return flip(path, array.copy_offset(array.copy) + 99 * 8);
    const std::uint64_t slot = region.slot_offset + slots.slot_of(7) * region.geometry.slot_bytes;
    flip(path, slot + (what == "state" ? 0 : sizeof(SlotStateFormat) + 16));
  }
  std::string file_of(SealedKind kind, std::uint32_t rank, std::uint64_t version) const {
    const auto directory = Directory::open(node(rank) + "/pool", Trust::own);
    for (std::uint32_t slot = 0; slot < level_files_max; ++slot) {
      const auto file = LevelFile::open(directory.value(), {kind, rank, slot}, Trust::own);
      const bool whole = file.ok() && file.value().whole();
      if (whole && file.value().header().id.version == version) return file.value().path();
    }
    return "";
  }
  std::string drained(std::uint64_t version) const {
    const auto found = find_versions(place_of_pool(node(9) + "/drain", "pool"), std::nullopt);
    for (const Manifest& each : found.value().manifests) {
      if (each.id.version == version) return each.directory;
    }
    return "";
  }
  void is_said(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      EXPECT_NE(said_.find(word), std::string::npos) << word << " is not in: " << said_;
    }
  }

  ArrayMode mode_ = ArrayMode::copy;
  std::string said_;
};

// What is damaged, and not lost, gives up nothing unless that is asked for: header, states, bodies
// and data alike, whatever level has the older version, in every mode.
using Kind = std::tuple<std::string, std::string, ArrayMode>;
class DamagedFiles : public Damage, public testing::WithParamInterface<Kind> {};

TEST_P(DamagedFiles, are_refused_with_the_remedy_and_kept_when_that_is_taken) {
  const auto& [what, levels, mode] = GetParam();
  make(levels, mode);
  damage(what);
  EXPECT_EQ(start(), refused_code);
  is_said({"rank 0", "rank-00000", "version 4 is whole in", "PERDURE_ALLOW_OLDER"});
  EXPECT_FALSE(fs::exists(file_of_rank_0() + ".damaged"));
  ASSERT_EQ(start(0, 0, true), 0) << said_;
  // Of a damaged slot the file itself has the version before.
  const bool has_older = what == "state" || what == "body";
  EXPECT_EQ(found_->version, has_older ? 6U : 4U);
  EXPECT_EQ(found_->mark, has_older ? 2U : 1U);
  EXPECT_EQ(fs::exists(file_of_rank_0() + ".damaged"), !has_older);
  ASSERT_EQ(start(1, 3), 0) << said_;
  EXPECT_EQ(found_->version, has_older ? 6U : 4U);
}

INSTANTIATE_TEST_SUITE_P(
    Levels, DamagedFiles,
    testing::Combine(testing::Values("header", "truncated", "state", "body", "data"),
                     testing::Values("redundancy=partner", "redundancy=off;DRAIN",
                                     "redundancy=partner;DRAIN"),
                     testing::Values(ArrayMode::copy, ArrayMode::twin, ArrayMode::log)));

TEST_F(Damage, a_file_is_rebuilt_where_nothing_is_given_up_by_that) {
  levels_ = "redundancy=partner;every=4;patience=20s";
  ASSERT_EQ(start(4, 1), 0);
  damage("truncated");
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(found_->version, 4U);
  EXPECT_TRUE(fs::exists(file_of_rank_0() + ".damaged"));
}

TEST_F(Damage, of_a_file_whose_drain_is_away_is_refused_and_keeps_everything) {
  make("redundancy=off;DRAIN");
  for (const std::uint32_t rank : {0U, 1U}) fs::remove(file_of(SealedKind::image, rank, 4));
  damage("header");
  fs::rename(node(9), node(8));
  EXPECT_EQ(start(0, 0, true), refused_code);
  is_said({"rank-00000"});
  EXPECT_TRUE(fs::exists(file_of_rank_0()));
  fs::rename(node(8), node(9));
  ASSERT_EQ(start(0, 0, true), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
  EXPECT_TRUE(fs::exists(file_of_rank_0() + ".damaged"));
}

// Beside a node that was lost.

TEST_F(Damage, of_an_image_makes_it_count_as_lost_and_its_guard_gives_it) {
  make("redundancy=partner");
  lose(1);
  const std::string image = file_of(SealedKind::image, 0, 4);
  flip(image, fs::file_size(image) / 2);
  EXPECT_EQ(start(0, 0, false, {0, 2}), refused_code);  // node 1 had its guard
  is_said({"image-00000", "is damaged and counts as lost"});
}

TEST_F(Damage, of_an_image_is_mended_by_what_others_guard) {
  levels_ = "redundancy=xor:3;every=4;patience=20s";
  ASSERT_EQ(start(4, 1, false, {0, 1, 2}), 0) << said_;
  const std::string image = file_of(SealedKind::image, 0, 4);
  flip(image, fs::file_size(image) / 2);
  damage("truncated");
  ASSERT_EQ(start(0, 0, false, {0, 1, 2}), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
  EXPECT_EQ(found_->mark, 1U);
  is_said({"image-00000", "is damaged and counts as lost", "were rebuilt"});
}

TEST_F(Damage, of_a_drained_version_makes_the_one_before_count) {
  levels_ = "redundancy=off;every=2;drain=" + node(9) + "/drain;patience=20s";
  ASSERT_EQ(start(2, 1), 0);
  ASSERT_EQ(start(2, 2), 0);
  const std::string directory = drained(4);
  flip(directory + "/node-00000", node_align_bytes + sealed_payload_offset + 200);  // in an image
  lose(0);
  lose(1);
  ASSERT_EQ(start(), 0) << said_;
  EXPECT_EQ(found_->version, 2U);
  EXPECT_EQ(found_->mark, 1U);
  is_said({"node-00000", "it counts as lost", "version 2 was brought back"});
}

TEST_F(Damage, of_all_drained_versions_leaves_what_images_have) {
  make("redundancy=partner;DRAIN");
  const std::string directory = drained(4);
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node-")) {
      flip(entry.path(), node_align_bytes + sealed_payload_offset + 200);
    }
  }
  lose(1);
  ASSERT_EQ(start(0, 0, false, {0, 2}), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
}

}  // namespace
}  // namespace perdure
