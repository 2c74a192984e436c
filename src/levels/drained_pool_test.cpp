// SPDX-License-Identifier: BSD-3-Clause
//
// What a drain has of a pool, reported and read as the pool's own files are.
// ctest: NAME levels_drain_test
#include "levels/drained_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "levels/pool_drain.hpp"
#include "levels/testing/drained_job.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

class DrainedPools : public testing::Test {
 protected:
  void SetUp() override {
    job_.run(2);
    fs::create_directories(job_.level());
    fs::permissions(job_.level(), fs::perms::owner_all);
    for (const std::uint32_t node : {0U, 1U}) {
      ASSERT_TRUE(drain_pool(job_.pool(node), job_.level(), {}).ok());
    }
  }
  std::vector<std::int64_t> values(std::uint32_t rank, std::uint64_t version) {
    const auto array = read_drained_array(job_.place(), rank, "u", 0, version);
    EXPECT_TRUE(array.ok()) << array.status().message();
    if (!array.ok()) return {};
    std::vector<std::int64_t> values(array.value().bytes.size() / sizeof(std::int64_t));
    std::memcpy(values.data(), array.value().bytes.data(), array.value().bytes.size());
    return values;
  }
  // The file that has the newest version of ranks 1 and 2.
  std::string node_file() {
    const auto found = find_versions(job_.place(), std::nullopt).take();
    return found.manifests.front().directory + "/node-00001";
  }

  DrainedJob job_{{0, 1, 1}};
};

TEST_F(DrainedPools, are_reported_as_the_pools_they_were_drained_from) {
  ASSERT_TRUE(is_drained_pool(job_.place()));
  EXPECT_FALSE(is_drained_pool(job_.pool(0)));
  EXPECT_FALSE(is_drained_pool(job_.level()));
  EXPECT_FALSE(is_drained_pool(job_.place() + "/none"));
  const auto report = inspect_drained_pool(job_.place(), {true}).take();
  EXPECT_EQ(report.worst(), Severity::fine);
  EXPECT_EQ(report.job.job_id, job_.record().job_id);
  EXPECT_EQ(report.version, 2U);
  ASSERT_EQ(report.versions.size(), 2U);
  EXPECT_EQ(report.versions[1].version, 1U);
  EXPECT_EQ(report.versions[0].parent, 1U);
  ASSERT_EQ(report.ranks.size(), 3U);
  for (const RankReport& rank : report.ranks) {
    const Catalogue* const old = catalogue_of(rank, 1);
    ASSERT_NE(old, nullptr);
    const auto entry = old->find_array("u");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->shape.extents.front(), job_.elements_of(rank.rank));
    EXPECT_EQ(catalogue_of(rank, 3), nullptr);
    EXPECT_EQ(rank.catalogue->version, 2U);
  }
}

TEST_F(DrainedPools, give_the_elements_of_each_version_and_rank) {
  for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) {
    for (const std::uint64_t version : {1U, 2U}) {
      const auto found = values(rank, version);
      ASSERT_EQ(found.size(), job_.elements_of(rank));
      EXPECT_EQ(found.front(), DrainedJob::value(rank, version));
      EXPECT_EQ(found.back(), DrainedJob::value(rank, version));
    }
  }
  const auto array = [this](std::uint32_t rank, const char* name, std::uint64_t version) {
    return read_drained_array(job_.place(), rank, name, 0, version).status().code();
  };
  EXPECT_EQ(array(0, "v", 2), Code::not_found);
  EXPECT_EQ(array(3, "u", 2), Code::not_found);
  EXPECT_EQ(array(0, "u", 7), Code::busy);
}

TEST_F(DrainedPools, name_what_is_damaged_and_give_the_version_before) {
  const auto bytes = fs::file_size(node_file());
  fs::permissions(node_file(), fs::perms::owner_all);
  std::fstream file(node_file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(bytes / 2));
  file.put('\x5a');
  file.close();
  const auto report = inspect_drained_pool(job_.place(), {true}).take();
  EXPECT_EQ(report.worst(), Severity::damage);
  EXPECT_EQ(report.version, 1U);
  EXPECT_EQ(report.versions.size(), 1U);
  const bool first = !read_drained_array(job_.place(), 1, "u", 0, 2).ok();
  const bool second = !read_drained_array(job_.place(), 2, "u", 0, 2).ok();
  EXPECT_TRUE(first != second);
  EXPECT_EQ(values(1, 1).front(), DrainedJob::value(1, 1));
  EXPECT_EQ(values(2, 1).front(), DrainedJob::value(2, 1));
}

TEST_F(DrainedPools, without_a_node_s_file_are_whole_only_as_of_before) {
  fs::remove(node_file());
  const auto report = inspect_drained_pool(job_.place(), {}).take();
  EXPECT_EQ(report.worst(), Severity::damage);
  EXPECT_EQ(report.version, 1U);
  EXPECT_EQ(values(0, 2).front(), DrainedJob::value(0, 2));
}

}  // namespace
}  // namespace perdure
