// SPDX-License-Identifier: BSD-3-Clause
//
// Pool directory: whose files are taken, and what a failed creation leaves.
#include "pool/pool_directory.hpp"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmem/file_device.hpp"
#include "pool/inspect.hpp"
#include "pool/job_record.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

class PoolDirectory : public testing::Test {
 protected:
  PoolDirectory() { options_.job_name = "test"; }

  Result<std::unique_ptr<Pool>> open(const std::string& name) {
    return open_pool(base_ + "/" + name, group_, options_);
  }
  // Makes a pool with `versions` versions.
  void make(const std::string& name, std::uint64_t versions) {
    auto pool = open(name);
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    auto array =
        pool.value()->open_array("u", {ArrayType::int64, ArrayMode::copy, true, {100}}, {});
    ASSERT_TRUE(array.ok());
    ASSERT_TRUE(pool.value()->restart().ok());
    for (std::uint64_t v = 1; v <= versions; ++v) {
      reinterpret_cast<std::uint64_t*>(array.value()->working())[3] = v * 7;
      ASSERT_EQ(pool.value()->commit().value(), v);
    }
  }

  perdure_test::TemporaryDirectory directory_;
  const std::string& base_ = directory_.path();
  SoloGroup group_;
  OpenOptions options_;
};

// What the third of three ranks sees of a pool of two.
class ThirdOfThree final : public SoloGroup {
 public:
  std::uint32_t rank() const override { return 2; }
  std::uint32_t ranks() const override { return 3; }
};

// pool.F1. The names that files of a directory get while this lives, and whether by being moved.
class NamesGiven {
 public:
  explicit NamesGiven(const std::string& directory) : fd_(::inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(fd_, directory.c_str(), IN_CREATE | IN_MOVED_TO), 0);
  }
  ~NamesGiven() { ::close(fd_); }
  NamesGiven(const NamesGiven&) = delete;
  NamesGiven& operator=(const NamesGiven&) = delete;

  std::set<std::pair<std::string, bool>> all() const {
    std::set<std::pair<std::string, bool>> names;
    alignas(inotify_event) std::array<char, 16384> bytes{};
    const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
    for (ssize_t at = 0; at < count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
      names.emplace(event->name, (event->mask & IN_MOVED_TO) != 0);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return names;
  }

 private:
  int fd_;
};

TEST_F(PoolDirectory, a_rank_file_gets_its_name_when_it_is_whole) {
  fs::create_directory(base_ + "/pool");
  fs::permissions(base_ + "/pool", fs::perms::owner_all);
  const NamesGiven given(base_ + "/pool");
  make("pool", 0);
  const auto names = given.all();
  EXPECT_TRUE(names.contains({rank_file_name(0), true}));
  EXPECT_FALSE(names.contains({rank_file_name(0), false}));
}

TEST_F(PoolDirectory, a_file_whose_making_was_cut_short_is_no_obstacle_and_goes_with_the_pool) {
  const std::string fresh = base_ + "/pool/" + fresh_rank_file_name(0);
  fs::create_directory(base_ + "/pool");
  fs::permissions(base_ + "/pool", fs::perms::owner_all);
  std::ofstream(fresh) << "begun";
  make("pool", 1);
  EXPECT_FALSE(fs::exists(fresh));
  std::ofstream(fresh) << "begun";
  ASSERT_TRUE(remove_pool(base_ + "/pool").ok());
  EXPECT_FALSE(fs::exists(base_ + "/pool"));
}

TEST_F(PoolDirectory, a_file_that_somebody_else_makes_now_stays) {
  const std::string fresh = base_ + "/pool/" + fresh_rank_file_name(0);
  fs::create_directory(base_ + "/pool");
  fs::permissions(base_ + "/pool", fs::perms::owner_all);
  const auto making = open_file_device(fresh, {.create = true});
  ASSERT_TRUE(making.ok()) << making.status().message();
  ASSERT_TRUE(making.value()->resize(8192).ok());
  options_.lock_wait_ms = 0;
  EXPECT_EQ(open("pool").status().code(), Code::busy);
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(PoolDirectory, what_belongs_to_a_pool_is_discarded_with_it) {
  options_.belongs = [](const std::string& name) { return name == "beside"; };
  make("pool", 1);
  for (const char* name : {"beside", "notes"}) std::ofstream(base_ + "/pool/" + name) << name;
  make("pool", 0);
  EXPECT_TRUE(fs::exists(base_ + "/pool/beside"));
  options_.discard = true;
  make("pool", 0);
  EXPECT_FALSE(fs::exists(base_ + "/pool/beside"));
  EXPECT_TRUE(fs::exists(base_ + "/pool/notes"));
}

TEST_F(PoolDirectory, a_rank_too_many_is_told_so_and_not_to_discard) {
  make("one", 1);
  ThirdOfThree group;
  const Status refused = open_pool(base_ + "/one", group, options_).status();
  EXPECT_EQ(refused.code(), Code::rank_mismatch);
  EXPECT_EQ(refused.message().find("DISCARD"), std::string::npos) << refused.message();
  fs::remove(base_ + "/one/rank-00000");
  const Status missing = open("one").status();
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_EQ(missing.message().find("DISCARD"), std::string::npos) << missing.message();
  EXPECT_NE(missing.message().find("perdure pool show"), std::string::npos) << missing.message();
}

TEST_F(PoolDirectory, the_file_of_another_pool_is_refused) {
  make("one", 1);
  make("two", 1);
  fs::copy_file(base_ + "/two/rank-00000", base_ + "/one/rank-00000",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(open("one").status().code(), Code::foreign);
}

TEST_F(PoolDirectory, a_creation_that_fails_leaves_nothing) {
  options_.job_name = std::string(70, 'x');  // refused when the region is formatted
  EXPECT_FALSE(open("new").ok());
  EXPECT_FALSE(fs::exists(base_ + "/new"));
  fs::create_directory(base_ + "/kept");
  std::ofstream(base_ + "/kept/mine") << "a user's file";
  EXPECT_FALSE(open("kept").ok());
  EXPECT_TRUE(fs::exists(base_ + "/kept/mine"));
  EXPECT_FALSE(fs::exists(base_ + "/kept/job"));
  EXPECT_FALSE(fs::exists(base_ + "/kept/rank-00000"));
}

TEST_F(PoolDirectory, inspection_says_what_a_restart_would_give) {
  make("one", 5);
  auto report = inspect_pool(base_ + "/one", {true});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().worst(), Severity::fine);
  EXPECT_EQ(report.value().version, 5U);
  EXPECT_EQ(report.value().job.job_name, "test");
  ASSERT_EQ(report.value().ranks.size(), 1U);
  EXPECT_EQ(report.value().ranks[0].catalogue->arrays[0].name, "u");
  auto dumped = dump_array(base_ + "/one", 0, "u");
  ASSERT_TRUE(dumped.ok()) << dumped.status().message();
  EXPECT_EQ(reinterpret_cast<const std::uint64_t*>(dumped.value().bytes.data())[3], 35U);
  EXPECT_EQ(dump_array(base_ + "/one", 0, "v").status().code(), Code::not_found);
  EXPECT_TRUE(dump_array(base_ + "/one", 0, "u", 5).ok());
  EXPECT_EQ(dump_array(base_ + "/one", 0, "u", 6).status().code(), Code::not_found);
  EXPECT_EQ(dump_array(base_ + "/one", 1, "u").status().code(), Code::not_found);
  EXPECT_EQ(inspect_pool(base_ + "/none", {}).status().code(), Code::not_found);
}

TEST_F(PoolDirectory, inspection_finds_damage_in_the_data) {
  make("one", 2);
  const ArrayEntry entry = inspect_pool(base_ + "/one", {}).value().ranks[0].catalogue->arrays[0];
  std::fstream file(base_ + "/one/rank-00000", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(entry.copy_offset(entry.copy) + 24));
  file.put('\x7f');
  file.close();
  EXPECT_EQ(inspect_pool(base_ + "/one", {}).value().worst(), Severity::fine);
  EXPECT_EQ(inspect_pool(base_ + "/one", {true}).value().worst(), Severity::damage);
  EXPECT_EQ(dump_array(base_ + "/one", 0, "u").status().code(), Code::damaged);
}

TEST_F(PoolDirectory, pieces_of_an_array_are_read_and_only_their_blocks_are_compared) {
  const std::uint64_t bytes = 1'000'003;  // some blocks of 64 KiB, and a part of one
  auto pool = open("large").take();
  auto* array =
      pool->open_array("u", {ArrayType::byte, ArrayMode::twin, true, {bytes}}, {}).value();
  ASSERT_TRUE(pool->restart().ok());
  std::mt19937_64 random(test_seed());
  std::vector<std::byte> stored(bytes);
  for (std::byte& each : stored) each = static_cast<std::byte>(random() & 0xff);
  std::memcpy(array->working(), stored.data(), bytes);
  ASSERT_TRUE(pool->commit().ok());
  auto reader = ArrayReader::open(base_ + "/large", 0, "u", 1).take();
  ASSERT_EQ(reader.size_bytes(), bytes);
  std::vector<std::byte> found(bytes);
  const auto read_equal = [&](std::uint64_t first, std::uint64_t count) {
    return reader.read(first, count, found.data()).ok() &&
           std::memcmp(found.data(), stored.data() + first, count) == 0;
  };
  EXPECT_TRUE(read_equal(0, bytes));
  EXPECT_TRUE(read_equal(bytes, 0));
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t first = random() % bytes;
    const std::uint64_t most =
        i % 2 == 0 ? bytes - first : std::min<std::uint64_t>(500, bytes - first);
    EXPECT_TRUE(read_equal(first, random() % (most + 1))) << first;
  }
  EXPECT_EQ(reader.read(bytes - 1, 2, found.data()).code(), Code::invalid_argument);
  EXPECT_EQ(reader.read(~0ULL, 2, found.data()).code(), Code::invalid_argument);
  const ArrayEntry entry = inspect_pool(base_ + "/large", {}).value().ranks[0].catalogue->arrays[0];
  std::fstream file(base_ + "/large/rank-00000", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(entry.copy_offset(entry.copy) + 200'000));
  file.put(static_cast<char>(~std::to_integer<int>(stored[200'000])));
  file.close();
  EXPECT_EQ(reader.read(150'000, 300'000, found.data()).code(), Code::damaged);
  EXPECT_EQ(reader.read(199'000, 10, found.data()).code(), Code::damaged);  // in the same block
  EXPECT_TRUE(read_equal(300'000, 700'000));
}

TEST_F(PoolDirectory, pieces_of_a_version_that_was_stored_over_are_refused) {
  auto pool = open("one").take();
  auto* array = pool->open_array("u", {ArrayType::int64, ArrayMode::copy, true, {100}}, {}).value();
  ASSERT_TRUE(pool->restart().ok());
  ASSERT_TRUE(pool->commit().ok());
  auto reader = ArrayReader::open(base_ + "/one", 0, "u", 1).take();
  std::array<std::byte, 800> found;
  EXPECT_TRUE(reader.read(0, found.size(), found.data()).ok());
  for (int i = 0; i < 3; ++i) {
    reinterpret_cast<std::uint64_t*>(array->working())[3] = 5;
    ASSERT_TRUE(pool->commit().ok());
  }
  EXPECT_EQ(reader.read(0, found.size(), found.data()).code(), Code::busy);
  EXPECT_EQ(ArrayReader::open(base_ + "/one", 0, "u", 1).status().code(), Code::busy);
  EXPECT_EQ(ArrayReader::open(base_ + "/one", 0, "v", 4).status().code(), Code::not_found);
}

TEST_F(PoolDirectory, removal_takes_the_pool_and_nothing_else) {
  make("one", 1);
  std::ofstream(base_ + "/one/mine") << "a user's file";
  ASSERT_TRUE(remove_pool(base_ + "/one").ok());
  EXPECT_TRUE(fs::exists(base_ + "/one/mine"));
  EXPECT_EQ(remove_pool(base_ + "/one").code(), Code::not_found);
  make("two", 1);
  ASSERT_TRUE(remove_pool(base_ + "/two").ok());
  EXPECT_FALSE(fs::exists(base_ + "/two"));
}

}  // namespace
}  // namespace perdure
