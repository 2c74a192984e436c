// Directory level: what it holds after each verb, and what it refuses. Levels under a pool that
// commits, and is killed, are in tests/pool/energy_test.cpp.
#include "levels/directory_level.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "pool/pool_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

class DirectoryLevelTest : public testing::Test {
 protected:
  DirectoryLevelTest() {
    const char* given = std::getenv("PERDURE_TEST_DIR");
    base_ = std::string(given != nullptr ? given : "/tmp") + "/perdure-test-XXXXXX";
    base_ = ::mkdtemp(base_.data());
    options_.job_name = "test";
  }
  ~DirectoryLevelTest() override {
    pool_.reset();
    fs::remove_all(base_);
  }

  Result<std::uint64_t> open(const std::string& name) {
    PERDURE_TRY_ASSIGN(pool_, open_pool(base_ + "/" + name, group_, options_));
    PERDURE_TRY_ASSIGN(array_, pool_->open_array("u", shape_, {}));
    return pool_->restart();
  }
  std::uint64_t& word() { return *reinterpret_cast<std::uint64_t*>(array_->working()); }
  void commit_and_keep(std::uint64_t value) {
    word() = value;
    const auto version = pool_->commit();
    ASSERT_TRUE(version.ok()) << version.status().message();
    auto kept = kept_pool(*pool_);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    const Status status = level().keep(kept.value(), version.value());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  DirectoryLevel level() { return {group_, base_ + "/level/pool", nullptr}; }

  std::string base_;
  SoloGroup group_;
  OpenOptions options_;
  ArrayShape shape_{ArrayType::int64, ArrayMode::copy, true, {100}};
  std::unique_ptr<Pool> pool_;
  VersionedArray* array_ = nullptr;
};

TEST_F(DirectoryLevelTest, a_level_that_was_never_written_holds_nothing) {
  const auto newest = level().newest();
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_FALSE(newest.value().has_value());
  const Status none = level().fetch(1, base_ + "/back");
  EXPECT_EQ(none.code(), Code::not_found);
  EXPECT_NE(none.message().find("its newest is none"), std::string::npos) << none.message();
}

TEST_F(DirectoryLevelTest, the_newest_version_that_was_kept_can_be_fetched_and_restarted_from) {
  ASSERT_TRUE(open("pool").ok());
  commit_and_keep(11);
  commit_and_keep(22);
  const auto newest = level().newest();
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest.value()->version, 2U);
  EXPECT_EQ(newest.value()->job.job_id, pool_->job_id());
  pool_.reset();
  fs::remove_all(base_ + "/pool");  // the node is lost
  const Status fetched = level().fetch(2, base_ + "/pool");
  ASSERT_TRUE(fetched.ok()) << fetched.message();
  const auto restarted = open("pool");
  ASSERT_TRUE(restarted.ok()) << restarted.status().message();
  EXPECT_EQ(restarted.value(), 2U);
  EXPECT_EQ(word(), 22U);
  commit_and_keep(33);
  EXPECT_EQ(level().newest().value()->version, 3U);
}

TEST_F(DirectoryLevelTest, a_version_that_gave_way_or_is_to_come_is_not_fetched) {
  ASSERT_TRUE(open("pool").ok());
  commit_and_keep(11);
  commit_and_keep(22);
  for (const std::uint64_t version : {1U, 3U}) {
    EXPECT_EQ(level().fetch(version, base_ + "/back").code(), Code::not_found) << version;
  }
  EXPECT_FALSE(fs::exists(base_ + "/back"));
}

TEST_F(DirectoryLevelTest, a_fetch_overwrites_no_pool) {
  ASSERT_TRUE(open("pool").ok());
  commit_and_keep(11);
  word() = 12;
  ASSERT_TRUE(pool_->commit().ok());
  EXPECT_EQ(level().fetch(1, base_ + "/pool").code(), Code::wrong_state);
  pool_.reset();
  EXPECT_EQ(open("pool").value(), 2U);
}

TEST_F(DirectoryLevelTest, another_jobs_version_and_a_newer_one_are_not_replaced) {
  ASSERT_TRUE(open("pool").ok());
  commit_and_keep(11);
  const KeptPool first = kept_pool(*pool_).value();
  EXPECT_EQ(level().check_free(first, 1).code(), Code::foreign);
  EXPECT_EQ(level().keep(first, 1).code(), Code::foreign);
  EXPECT_TRUE(level().check_free(first, 2).ok());
  ASSERT_TRUE(open("another").ok());
  word() = 99;
  ASSERT_TRUE(pool_->commit().ok());
  const Status refused = level().keep(kept_pool(*pool_).value(), 2);
  EXPECT_EQ(refused.code(), Code::foreign);
  EXPECT_NE(refused.message().find("version 1 of job 'test'"), std::string::npos)
      << refused.message();
  EXPECT_TRUE(fs::exists(base_ + "/level/pool/version-1/rank-00000"));
  EXPECT_FALSE(fs::exists(base_ + "/level/pool/version-2"));
}

TEST_F(DirectoryLevelTest, a_link_that_leads_to_something_else_is_not_replaced) {
  ASSERT_TRUE(open("pool").ok());
  ASSERT_TRUE(pool_->commit().ok());
  fs::create_directories(base_ + "/level/pool");
  fs::create_symlink("mine", base_ + "/level/pool/current");
  EXPECT_EQ(level().keep(kept_pool(*pool_).value(), 1).code(), Code::foreign);
  EXPECT_EQ(fs::read_symlink(base_ + "/level/pool/current"), "mine");
}

}  // namespace
}  // namespace perdure
