// SPDX-License-Identifier: BSD-3-Clause
//
// A drain whose file system is read-only, full or not mounted: at a start that does not need it, at
// one that does, and while a job runs. An empty directory on which nothing is mounted looks like a
// drain that was never used: who has a pool that was drained there knows better.
// ctest: LABELS truth
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <fstream>

#include "levels_of_jobs.hpp"

namespace perdure {
namespace {

// The drain is on a file system of its own, which this process alone sees.
class DrainAway : public LevelsOfJobs, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "this user can't mount: " << std::strerror(errno);
    }
    fs::create_directories(place());
    ASSERT_EQ(::mount("tmpfs", place().c_str(), "tmpfs", 0, "size=64m,mode=700"), 0);
    levels_ = "redundancy=partner;every=2;lease=1s;patience=5s;drain=" + place() + "/deep/level";
    fs::create_directory(place() + "/deep");
    fs::permissions(place() + "/deep", fs::perms::owner_all);
  }
  void TearDown() override {
    while (!IsSkipped() && ::umount2(place().c_str(), MNT_DETACH) == 0) {
    }
  }
  std::string place() const { return node(9) + "/mounted"; }
  void take_away() const {
    if (GetParam() == "read_only") {
      ASSERT_EQ(::mount("tmpfs", place().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
    } else if (GetParam() == "full") {
      std::ofstream file(place() + "/rest", std::ios::binary);
      const std::string page(4096, 'x');
      while (file.write(page.data(), 4096).flush()) {
      }
    } else {
      ASSERT_EQ(::mount("tmpfs", place().c_str(), "tmpfs", MS_RDONLY, nullptr), 0);
    }
  }
  void give_back() const {
    if (GetParam() == "read_only") {
      ASSERT_EQ(::mount("tmpfs", place().c_str(), "tmpfs", MS_REMOUNT, nullptr), 0);
    } else if (GetParam() == "full") {
      fs::remove(place() + "/rest");
    } else {
      ASSERT_EQ(::umount2(place().c_str(), MNT_DETACH), 0);
    }
  }
  int start(std::vector<std::uint32_t> nodes, std::uint64_t commits, std::uint64_t mark,
            const std::function<bool(const Levels&, std::uint64_t)>& then = nullptr) {
    testing::internal::CaptureStderr();
    const int code = run({.nodes = std::move(nodes),
                          .commits = commits,
                          .mark = mark,
                          .take_last = true,
                          .then = then});
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::string said_;
};

TEST_P(DrainAway, a_start_that_does_not_need_it_goes_on_and_says_so) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  take_away();
  ASSERT_EQ(start({0, 1}, 4, 2), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
  EXPECT_NE(said_.find(place() + "/deep"), std::string::npos) << said_;
  // Nor does one whose lost node others guard.
  lose(1);
  ASSERT_EQ(start({0, 2}, 1, 3), 0) << said_;
  EXPECT_EQ(found_->version, 8U);
  give_back();
  ASSERT_EQ(start({0, 2}, 4, 4), 0) << said_;
  EXPECT_EQ(found_->version, 9U);
  for (const std::uint32_t number : {0U, 1U, 2U}) lose(number);
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 13U);
}

// It can be read where it is read-only or full, but a run may not go on from it without a lease.
TEST_P(DrainAway, a_start_that_needs_it_is_refused_and_loses_nothing) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  for (const std::uint32_t number : {0U, 1U}) lose(number);
  take_away();
  EXPECT_EQ(start({0, 1}, 1, 2), refused_code) << said_;
  EXPECT_NE(said_.find(place()), std::string::npos) << said_;
  EXPECT_FALSE(fs::exists(node(0) + "/pool/job"));
  give_back();
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
  EXPECT_EQ(found_->mark, 1U);
}

TEST_P(DrainAway, a_run_goes_on_says_so_and_loses_nothing) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  const auto then = [this](const Levels&, std::uint64_t version) {
    if (version == 5) take_away();
    return true;
  };
  ASSERT_EQ(start({0, 1}, 6, 2, then), 0) << said_;
  EXPECT_NE(said_.find(place()), std::string::npos) << said_;
  give_back();
  ASSERT_EQ(start({0, 1}, 4, 3), 0) << said_;
  EXPECT_EQ(found_->version, 10U);
  for (const std::uint32_t number : {0U, 1U}) lose(number);
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 14U);
}

// The drain is what a directory has when something is mounted there.
class DrainUnmounted : public LevelsOfJobs {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "this user can't mount: " << std::strerror(errno);
    }
    for (const std::string& path : {kept(), place()}) {
      fs::create_directories(path);
      fs::permissions(path, fs::perms::owner_all);
    }
    mount();
    use("redundancy=partner;every=2");
  }
  void TearDown() override {
    while (!IsSkipped() && ::umount2(place().c_str(), MNT_DETACH) == 0) {
    }
  }
  std::string kept() const { return node(8) + "/kept"; }
  std::string place() const { return node(9) + "/mounted"; }
  std::string drain() const { return place() + "/level"; }
  void use(const std::string& levels) {
    levels_ = levels + ";lease=1s;patience=5s;drain=" + drain();
  }
  void mount() const {
    ASSERT_EQ(::mount(kept().c_str(), place().c_str(), nullptr, MS_BIND, nullptr), 0);
  }
  void unmount() const { ASSERT_EQ(::umount2(place().c_str(), MNT_DETACH), 0); }
  int start(std::vector<std::uint32_t> nodes, std::uint64_t commits, std::uint64_t mark) {
    testing::internal::CaptureStderr();
    const int code =
        run({.nodes = std::move(nodes), .commits = commits, .mark = mark, .take_last = true});
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  void is_said(const std::string& words) const {
    EXPECT_NE(said_.find(words), std::string::npos) << words << " is not in: " << said_;
  }

  std::string said_;
};

TEST_F(DrainUnmounted, is_known_by_nodes_that_have_the_pool_and_nothing_is_drained_there) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  unmount();
  ASSERT_EQ(start({0, 1}, 4, 2), 0) << said_;
  is_said("was drained to " + drain() + "/pool, which is not there");
  EXPECT_EQ(found_->version, 4U);
  EXPECT_TRUE(fs::is_empty(place()));
  // By one of them, too, beside a fresh one.
  lose(1);
  ASSERT_EQ(start({0, 2}, 1, 3), 0) << said_;
  is_said("was drained to " + drain() + "/pool, which is not there");
  EXPECT_EQ(found_->version, 8U);
  EXPECT_TRUE(fs::is_empty(place()));
  mount();
  ASSERT_EQ(start({0, 2}, 4, 4), 0) << said_;
  EXPECT_EQ(said_.find("not there"), std::string::npos) << said_;
  for (const std::uint32_t number : {0U, 1U, 2U}) lose(number);
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 13U);
}

TEST_F(DrainUnmounted, refuses_a_start_that_needs_it) {
  use("redundancy=off;every=2");
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  lose(1);
  unmount();
  EXPECT_EQ(start({0, 2}, 1, 2), refused_code) << said_;
  is_said("was drained to " + drain() + "/pool, which is not there");
  EXPECT_TRUE(fs::is_empty(place()));
  mount();
  ASSERT_EQ(start({0, 2}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
  EXPECT_EQ(found_->mark, 1U);
}

// Nothing can be known then, but that the directory was not there.
TEST_F(DrainUnmounted, is_reported_by_nodes_that_have_nothing_as_a_drain_that_is_made) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  is_said("the drain " + drain() + " is not there and is made");
  for (const std::uint32_t number : {0U, 1U}) lose(number);
  unmount();
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  is_said("the drain " + drain() + " is not there and is made");
  EXPECT_EQ(found_->version, 0U);
  for (const std::uint32_t number : {0U, 1U}) lose(number);
  mount();
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 4U);
}

TEST_F(DrainUnmounted, is_told_from_one_that_was_removed_by_a_directory_that_the_user_makes) {
  ASSERT_EQ(start({0, 1}, 4, 1), 0) << said_;
  fs::remove_all(drain());
  ASSERT_EQ(start({0, 1}, 2, 2), 0) << said_;
  is_said("make that directory, and the drain begins anew");
  for (const std::string& path : {drain(), drain() + "/pool"}) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
  }
  ASSERT_EQ(start({0, 1}, 2, 3), 0) << said_;
  is_said("what this pool had drained to it is not there any more");
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(said_, "");
  for (const std::uint32_t number : {0U, 1U}) lose(number);
  ASSERT_EQ(start({0, 1}, 0, 0), 0) << said_;
  EXPECT_EQ(found_->version, 8U);
}

INSTANTIATE_TEST_SUITE_P(Levels, DrainAway, testing::Values("read_only", "full", "missing"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace perdure
