// SPDX-License-Identifier: BSD-3-Clause
//
// The drain is killed, or its device fails, at every call that changes something on the level: at
// every such point the newest version that had a manifest can be read, and the next drain goes on.
// ctest: IN fault_calls LONG 1800
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "levels/drain.hpp"
#include "levels/lease.hpp"
#include "levels/testing/drained_job.hpp"
#include "levels/testing/fault_calls.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;
using faults::Fault;
using std::chrono::milliseconds;

constexpr milliseconds enough{60'000};

// Two nodes; version 1 is on the level, and node 1 has drained version 2. What is killed drains
// version 2 of node 0, writes the manifest and removes version 1.
class KilledDrain : public testing::Test {
 protected:
  void SetUp() override {
    job_.run(2);
    for (const std::uint64_t version : {1U, 2U}) {
      job_.make_images(version, static_cast<std::uint32_t>(version));
      ids_[version] = job_.id_of(version);
    }
    for (const std::uint32_t node : {1U, 0U}) ASSERT_TRUE(drain(node, ids_[1]).ok());
    ASSERT_TRUE(drain(1, ids_[2]).ok());
    fs::copy(job_.level(), job_.base() + "/before", fs::copy_options::recursive);
  }

  // The failure of it, in the words that an application would see.
  Status drain(std::uint32_t node, VersionId id) {
    DrainRequest request = job_.request(node);
    request.keep = 1;
    NodeDrain drain(request);
    EXPECT_TRUE(drain.start(id));
    PERDURE_TRY(drain.stop(enough));
    return drain.state().failure;
  }
  void reset() {
    fs::remove_all(job_.level());
    fs::copy(job_.base() + "/before", job_.level(), fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(job_.level())) {
      fs::permissions(entry, entry.is_directory() ? fs::perms::owner_all
                                                  : fs::perms::owner_read | fs::perms::owner_write);
    }
    fs::permissions(job_.level(), fs::perms::owner_all);
  }
  // How the child ended; `calls` are those that it made.
  int drain_in_child(Fault fault, unsigned at_call, unsigned* calls = nullptr) {
    int counted[2] = {-1, -1};
    EXPECT_EQ(::pipe(counted), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      faults::set_plan({job_.level(), at_call, fault, 0, no_renames_over_nothing_});
      const Status drained = drain(0, ids_[2]);
      const unsigned made = faults::calls();
      const bool sent = ::write(counted[1], &made, sizeof made) == sizeof made;
      ::_exit(drained.ok() && sent ? 0 : 1);
    }
    ::close(counted[1]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    unsigned made = 0;
    if (calls != nullptr && ::read(counted[0], &made, sizeof made) == sizeof made) *calls = made;
    ::close(counted[0]);
    return status;
  }
  std::vector<Manifest> versions() {
    auto found = find_versions(job_.place(), job_.record().job_id);
    EXPECT_TRUE(found.ok()) << found.status().message();
    for (const std::string& problem : found.value().problems) ADD_FAILURE() << problem;
    return found.take().manifests;
  }
  // What holds after any crash; the number of the newest version.
  std::uint64_t check_newest() {
    const auto found = versions();
    if (found.empty()) {
      ADD_FAILURE() << "no version is left";
      return 0;
    }
    for (const Manifest& manifest : found) EXPECT_EQ(job_.wrong_in(manifest), "");
    return found.front().id.version;
  }
  void check_next_drain() {
    const Status drained = drain(0, ids_[2]);
    EXPECT_TRUE(drained.ok()) << drained.message();
    const auto found = versions();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].id, ids_[2]);
    EXPECT_EQ(job_.wrong_in(found[0]), "");
    EXPECT_FALSE(fs::exists(fs::path(found[0].directory).parent_path() / version_name(ids_[1])));
  }
  std::vector<std::string> files_of(VersionId id) {
    const auto found = versions();
    std::vector<std::string> names;
    const fs::path job = fs::path(found.at(0).directory).parent_path();
    for (const auto& entry : fs::directory_iterator(job / version_name(id))) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  DrainedJob job_{{0, 1}, 30'000};
  VersionId ids_[3];
  bool no_renames_over_nothing_ = false;
};

// Of a file system that has renames over nothing, and of one that has not.
class KilledDrains : public KilledDrain, public testing::WithParamInterface<bool> {};

TEST_P(KilledDrains, at_every_call_leaves_a_newest_version_that_is_whole) {
  no_renames_over_nothing_ = GetParam();
  unsigned calls = 0;
  ASSERT_EQ(drain_in_child(Fault::none, 0, &calls), 0);
  ASSERT_GT(calls, 15U);
  std::uint64_t before = 1;
  for (const std::uint64_t drawn : one_of_each_part(1, calls, 8)) {
    const auto call = static_cast<unsigned>(drawn);
    for (const Fault fault : {Fault::kill_half, Fault::kill}) {
      SCOPED_TRACE("call " + std::to_string(call));
      reset();
      const int status = drain_in_child(fault, call);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      const std::uint64_t newest = check_newest();
      if (fault == Fault::kill) {
        EXPECT_GE(newest, before);
        before = newest;
      }
      check_next_drain();
    }
  }
  EXPECT_EQ(before, 2U);
  std::printf("%u calls, killed before and in the middle of each\n", calls);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, KilledDrains, testing::Bool());

// A run that takes the level and gives it back, killed at every call; another one comes after it.
class KilledLease : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    job_.run(1);
    ASSERT_TRUE(LevelDirectory::make_below(job_.level(), "").ok());
  }

  Status take_after(std::uint64_t above) {
    auto lease = Lease::take(job_.place(), job_.record(), above, enough, [](const Status&) {});
    PERDURE_TRY(lease.status());
    lease.value()->give_back(enough);
    return Status::success();
  }
  int take_in_child(unsigned at_call) {
    const pid_t child = ::fork();
    if (child == 0) {
      faults::set_plan({job_.level(), at_call, Fault::kill, 0, GetParam()});
      ::_exit(take_after(0).ok() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  DrainedJob job_{{0}};
};

TEST_P(KilledLease, is_read_by_the_next_run_which_takes_the_level) {
  for (unsigned call = 1;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    fs::remove_all(job_.place());
    const int status = take_in_child(call);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_GT(call, 8U);
      return;
    }
    const auto left = newest_lease(job_.place());
    ASSERT_TRUE(left.ok()) << left.status().message();
    const std::uint64_t above = left.value() ? left.value()->number : 0;
    if (left.value()) {
      EXPECT_TRUE(wait_until_gone(job_.place(), *left.value()).ok());
    }
    const Status taken = take_after(above);
    EXPECT_TRUE(taken.ok()) << taken.message();
    EXPECT_EQ(newest_lease(job_.place()).value()->number, above + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(FileSystems, KilledLease, testing::Bool());

TEST_F(KilledDrain, leftovers_of_a_killed_writer_go_with_the_manifest_of_their_version) {
  reset();
  ASSERT_TRUE(WIFSIGNALED(drain_in_child(Fault::kill_half, 3)));
  const auto left = files_of(ids_[2]);
  ASSERT_TRUE(std::any_of(left.begin(), left.end(), is_unfinished_node_file));
  check_next_drain();
  EXPECT_EQ(files_of(ids_[2]), (std::vector<std::string>{"manifest", "node-00000", "node-00001"}));
}

TEST_F(KilledDrain, a_device_that_fails_at_any_call_is_told_and_loses_nothing) {
  unsigned calls = 0;
  ASSERT_EQ(drain_in_child(Fault::none, 0, &calls), 0);
  for (const int error : {ENOSPC, EIO, EROFS}) {
    for (const std::uint64_t drawn : one_of_each_part(1, calls, 6)) {
      const auto call = static_cast<unsigned>(drawn);
      SCOPED_TRACE(std::string(std::strerror(error)) + " from call " + std::to_string(call) +
                   " on");
      reset();
      faults::set_plan({job_.level(), call, Fault::fail, error});
      const Status failed = drain(0, ids_[2]);
      faults::set_plan({});
      const std::uint64_t newest = check_newest();
      if (failed.ok()) {
        EXPECT_EQ(newest, 2U);  // what failed was the removal of what is no longer needed
      } else {
        EXPECT_NE(failed.message().find(job_.level()), std::string::npos) << failed.message();
        EXPECT_NE(failed.message().find(std::strerror(error)), std::string::npos)
            << failed.message();
      }
      check_next_drain();
    }
  }
}

}  // namespace
}  // namespace perdure
