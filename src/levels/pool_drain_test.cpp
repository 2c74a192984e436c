// SPDX-License-Identifier: BSD-3-Clause
//
// Draining pools that no process uses, node by node: what is on the level after it, and what is
// left out.
// ctest: NAME levels_drain_test
#include "levels/pool_drain.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "levels/testing/drained_job.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::uint64_t>;

class PoolDrains : public testing::Test {
 protected:
  // What was reported; a refusal fails the test.
  PoolDrainReport drain(std::uint32_t node, std::uint32_t keep = 2) {
    fs::create_directories(job_.level());
    fs::permissions(job_.level(), fs::perms::owner_all);
    PoolDrainOptions options;
    options.keep = keep;
    auto report = drain_pool(job_.pool(node), job_.level(), options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.take() : PoolDrainReport{};
  }
  // The numbers of versions on the level, all of which must be right.
  Numbers numbers() {
    const auto found = find_versions(job_.place(), std::nullopt);
    EXPECT_TRUE(found.ok()) << found.status().message();
    Numbers numbers;
    for (const Manifest& manifest : found.value().manifests) {
      EXPECT_EQ(job_.wrong_in(manifest), "");
      numbers.push_back(manifest.id.version);
    }
    return numbers;
  }
  static Numbers numbers_of(const PoolDrainReport& report) {
    Numbers numbers;
    for (const PoolDrainVersion& version : report.versions) numbers.push_back(version.id.version);
    return numbers;
  }
  void copy_pool(std::uint32_t node, const std::string& to) {
    fs::remove_all(to);
    fs::copy(job_.pool(node), to, fs::copy_options::recursive);
    fs::permissions(to, fs::perms::owner_all);
    for (const auto& entry : fs::directory_iterator(to)) {
      fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
    }
  }

  DrainedJob job_{{0, 1, 1}};
};

TEST_F(PoolDrains, nodes_that_know_nothing_of_each_other_make_a_whole_version) {
  job_.run(2);
  const auto first = drain(1);
  EXPECT_EQ(numbers_of(first), (Numbers{2, 1}));
  for (const PoolDrainVersion& version : first.versions) {
    EXPECT_TRUE(version.written);
    EXPECT_FALSE(version.complete);
    EXPECT_EQ(version.missing, 1U);
    EXPECT_EQ(version.ranks, (std::vector<std::uint32_t>{1, 2}));
  }
  EXPECT_EQ(numbers(), Numbers{});
  const auto second = drain(0);
  for (const PoolDrainVersion& version : second.versions) EXPECT_TRUE(version.complete);
  EXPECT_EQ(numbers(), (Numbers{2, 1}));
  for (const std::uint32_t node : {0U, 1U}) {
    for (const PoolDrainVersion& version : drain(node).versions) {
      EXPECT_FALSE(version.written);
      EXPECT_TRUE(version.complete);
    }
  }
}

TEST_F(PoolDrains, ranks_that_moved_go_beside_what_their_nodes_drained_before) {
  DrainedJob moved({0, 0, 1});
  fs::create_directory(moved.level());
  fs::permissions(moved.level(), fs::perms::owner_all);
  moved.run(1);
  ASSERT_TRUE(drain_pool(moved.pool(0), moved.level(), {}).ok());
  fs::remove(moved.pool(0) + "/rank-00001");
  fs::rename(moved.pool(1) + "/rank-00002", moved.pool(0) + "/rank-00002");
  const auto report = drain_pool(moved.pool(0), moved.level(), {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().versions.at(0).problem, "");
  EXPECT_TRUE(report.value().versions.at(0).written);
  const auto found = find_versions(moved.place(), std::nullopt).take();
  ASSERT_EQ(found.manifests.size(), 1U);
  EXPECT_EQ(found.manifests[0].files.size(), 2U);
  EXPECT_EQ(moved.wrong_in(found.manifests[0]), "");
}

TEST_F(PoolDrains, a_version_that_only_some_nodes_have_does_not_keep_the_one_before_away) {
  job_.run(2);
  copy_pool(1, job_.base() + "/before");
  job_.run(1);
  fs::remove_all(job_.pool(1));
  fs::rename(job_.base() + "/before", job_.pool(1));
  EXPECT_EQ(numbers_of(drain(0, 1)), (Numbers{3, 2}));
  EXPECT_EQ(numbers_of(drain(1, 1)), (Numbers{2, 1}));
  EXPECT_EQ(numbers(), Numbers{2});
}

TEST_F(PoolDrains, what_a_restore_abandoned_is_left_out) {
  job_.run(3);
  job_.make_images(3, 0);
  job_.run(0, [](Pool& pool) { ASSERT_TRUE(pool.restore(1).ok()); });
  for (const std::uint32_t node : {0U, 1U}) EXPECT_EQ(numbers_of(drain(node)), Numbers{1});
  EXPECT_EQ(numbers(), Numbers{1});
}

TEST_F(PoolDrains, images_that_the_ring_has_forgotten_are_drained_too) {
  job_.run(1);
  job_.make_images(1, 0);
  job_.run(5);
  job_.make_images(6, 1);
  for (const std::uint32_t node : {0U, 1U}) {
    EXPECT_EQ(numbers_of(drain(node, 9)), (Numbers{6, 5, 4, 1}));
  }
  EXPECT_EQ(numbers(), (Numbers{6, 5, 4, 1}));
}

TEST_F(PoolDrains, a_damaged_version_is_told_and_the_others_are_drained) {
  job_.run(2);
  drain(1);
  const std::string path = job_.pool(0) + "/rank-00000";
  const std::int64_t words[] = {DrainedJob::value(0, 2), DrainedJob::value(0, 2)};
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<long>(bytes.size()));
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(words), sizeof words));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  std::ofstream(path, std::ios::binary | std::ios::in) << bytes;
  const auto report = drain(0);
  ASSERT_EQ(report.versions.size(), 2U);
  EXPECT_NE(report.versions[0].problem, "");
  EXPECT_FALSE(report.versions[0].written);
  EXPECT_EQ(report.versions[1].problem, "");
  EXPECT_EQ(numbers(), Numbers{1});
}

TEST_F(PoolDrains, a_pool_in_use_is_refused_and_its_user_named) {
  DrainedJob alone({0});
  fs::create_directory(alone.level());
  fs::permissions(alone.level(), fs::perms::owner_all);
  alone.run(1, [&](Pool&) {
    const auto refused = drain_pool(alone.pool(0), alone.level(), {});
    ASSERT_EQ(refused.status().code(), Code::busy);
    EXPECT_NE(refused.status().message().find(std::to_string(::getpid())), std::string::npos)
        << refused.status().message();
  });
  EXPECT_FALSE(fs::exists(alone.place()));
}

TEST_F(PoolDrains, a_level_or_pool_that_is_not_there_is_refused) {
  job_.run(1);
  const auto no_level = drain_pool(job_.pool(0), job_.base() + "/none", {});
  EXPECT_EQ(no_level.status().code(), Code::not_found);
  EXPECT_NE(no_level.status().message().find("make it, or mount"), std::string::npos);
  const auto no_pool = drain_pool(job_.base(), job_.base(), {});
  EXPECT_EQ(no_pool.status().code(), Code::not_found);
}

TEST_F(PoolDrains, a_drain_that_is_stopped_leaves_nothing_half_done) {
  job_.run(1);
  fs::create_directory(job_.level());
  fs::permissions(job_.level(), fs::perms::owner_all);
  PoolDrainOptions options;
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  const auto report = drain_pool(job_.pool(0), job_.level(), options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report.value().stopped);
  EXPECT_FALSE(report.value().versions.at(0).written);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(job_.place())) {
    files += entry.is_regular_file() && entry.path().filename() != "lease-1" ? 1 : 0;
  }
  EXPECT_EQ(files, 0);
}

// By another program, in the middle of it: the rings of two ranks, and their images.
TEST_F(PoolDrains, a_file_that_is_cut_meanwhile_is_told_and_the_process_lives) {
  for (const bool of_images : {false, true}) {
    DrainedJob job({0, 0}, 1'200'000);
    fs::create_directory(job.level());
    fs::permissions(job.level(), fs::perms::owner_all);
    job.run(1);
    if (of_images) job.make_images(1, 0);
    std::set<std::string> cut;
    for (const auto& entry : fs::directory_iterator(job.pool(0))) {
      const std::string name = entry.path().filename();
      if (name.starts_with(of_images ? "image-" : "rank-")) cut.insert(entry.path());
    }
    PoolDrainOptions options;
    options.progress = [&](std::uint64_t, std::uint64_t) {
      for (const std::string& path : cut) {
        fs::resize_file(path, 20'000);
      }
      return true;
    };
    const auto report = drain_pool(job.pool(0), job.level(), options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const PoolDrainVersion& version = report.value().versions.at(0);
    EXPECT_FALSE(version.written);
    EXPECT_NE(version.problem, "");
    const auto found = find_versions(job.place(), std::nullopt);
    EXPECT_TRUE(found.ok() && found.value().manifests.empty());
  }
}

}  // namespace
}  // namespace perdure
