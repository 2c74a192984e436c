// SPDX-License-Identifier: BSD-3-Clause
//
// A cached file that one rank committed with its pool, and two ranks that go on with the pool: the
// file is recovered first. They are killed at every call that changes a file, or files fail; pool
// and file are at one version then, the old ranks' or the new ones'.
// ctest: DEPS levels cache IN fault_calls LABELS truth TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/testing/thread_group.hpp"
#include "cache/pool_parts.hpp"
#include "group_file.hpp"
#include "levels/testing/fault_calls.hpp"
#include "pool/inspect.hpp"
#include "pool/pool_directory.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

constexpr int right = 0;
constexpr int refused = 3;
constexpr int wrong = 4;
constexpr std::uint64_t committed = 5;

// As the library of MPI says it.
Status recover_files(const std::string& pool, const JobId& job, std::uint64_t version,
                     std::uint64_t incarnation) {
  PoolVersion of;
  std::copy_n(job.words, 2, of.job);
  of.version = version;
  of.incarnation = incarnation;
  return recover_pool_parts(pool, of);
}

class FileOfOldRanks : public testing::Test {
 protected:
  FileOfOldRanks() {
    fs::create_directory(root_);
    std::ofstream(file_).flush();
  }

  // In a process of its own, which ends as if killed.
  int run(std::uint32_t ranks, const std::function<Status(Pool&, Group&)>& body,
          const faults::Plan& plan = {}) {
    const pid_t child = ::fork();
    if (child != 0) {
      int state = 0;
      EXPECT_EQ(::waitpid(child, &state, 0), child);
      return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    }
    ::alarm(60);
    std::atomic<int> code{right};
    ThreadJob job(ranks);
    job.run([&](ThreadGroup& group) {
      OpenOptions options;
      options.any_ranks = true;
      options.job_name = "files";
      options.lock_wait_ms = 50;
      options.of_cached_file = [](const std::string& name) { return is_part_name(name); };
      options.recover_files = recovers_ ? recover_files : nullptr;
      if (group.rank() == 0) faults::set_plan(plan);
      auto pool = open_pool(pool_, group, options);
      Status done = pool.ok() ? body(*pool.value(), group) : pool.status();
      if (done.ok() || done.code() == Code::peer_failed) return;  // who failed ends all
      std::fprintf(stderr, "rank %u: %s\n", group.rank(), done.message().c_str());
      std::ofstream(said_, std::ios::app) << done.message() << "\n";
      code = done.code() == Code::damaged ? wrong : refused;
      job.end();
      ::_exit(code);
    });
    ::_exit(code);
  }

  static Result<VersionedArray*> open_array(Pool& pool) {
    ArrayOptions options;
    options.ranks = RankRule::same;
    return pool.open_array("u", {ArrayType::int64, ArrayMode::copy, true, {10}}, options);
  }

  // One rank, which commits with the file, and changes it after that.
  Status one_rank(Pool& pool, Group& group, std::uint64_t commits) {
    PERDURE_TRY_ASSIGN(auto* array, open_array(pool));
    PERDURE_TRY_ASSIGN(std::uint64_t version, pool.restart());
    PERDURE_TRY_ASSIGN(const auto file, GroupFile::open(group, pool, file_));
    const std::string what = file->wrong_at(version);
    if (!what.empty()) return {Code::damaged, what};
    for (std::uint64_t i = 0; i < commits; ++i) {
      *reinterpret_cast<std::uint64_t*>(array->working()) = ++version;
      PERDURE_TRY(file->change_to(version));
      PERDURE_TRY(pool.commit().status());
    }
    PERDURE_TRY(file->change_to(version + 1));
    std::fflush(stderr);
    ::_exit(right);
  }
  // Two on a node each, where their parts are.
  Status two_nodes(Pool& pool, Group& group, std::uint64_t commits, bool close) {
    PERDURE_TRY_ASSIGN(auto* array, open_array(pool));
    PERDURE_TRY_ASSIGN(std::uint64_t version, pool.restart());
    const std::string node = root_ + "/node-" + std::to_string(group.rank());
    fs::create_directories(node);
    PERDURE_TRY_ASSIGN(const auto file, GroupFile::open(group, pool, file_, "", node));
    const std::string what = file->wrong_at(version);
    if (!what.empty()) return {Code::damaged, what};
    for (std::uint64_t i = 0; i < commits; ++i) {
      *reinterpret_cast<std::uint64_t*>(array->working()) = ++version;
      PERDURE_TRY(file->change_to(version));
      PERDURE_TRY(pool.commit().status());
    }
    if (close) return file->close();
    PERDURE_TRY(file->change_to(version + 1));
    PERDURE_TRY(agree(group, Status::success()));
    std::fflush(stderr);
    ::_exit(right);
  }
  // Two, which commit without it.
  static Status two_ranks(Pool& pool, Group&) {
    PERDURE_TRY_ASSIGN(auto* array, open_array(pool));
    PERDURE_TRY_ASSIGN(const std::uint64_t version, pool.restart());
    auto* const words = reinterpret_cast<std::uint64_t*>(array->working());
    if (words[0] != version) return {Code::damaged, "the array is of another version"};
    words[0] = version + 1;
    return pool.commit().status();
  }

  void make() {
    ASSERT_EQ(run(1, [&](Pool& pool, Group& group) { return one_rank(pool, group, committed); }),
              right);
  }
  bool has_parts() const {
    for (const auto& entry : fs::directory_iterator(pool_)) {
      if (is_part_name(entry.path().filename())) return true;
    }
    return false;
  }

  // Which pool is there; whoever goes on with it finds the file at its version.
  std::uint32_t judge() {
    const auto report = inspect_pool(pool_, {.verify_data = true});
    EXPECT_TRUE(report.ok()) << report.status().message();
    if (!report.ok()) return 0;
    const std::uint32_t ranks = report.value().job.ranks;
    if (ranks == 1) {
      EXPECT_EQ(report.value().version, committed);
      EXPECT_EQ(run(1, [&](Pool& pool, Group& group) { return one_rank(pool, group, 0); }), right);
      return ranks;
    }
    EXPECT_EQ(report.value().version, committed + 1);
    EXPECT_FALSE(has_parts());
    EXPECT_EQ(bytes_of_file(file_), GroupFileContents{1}.at(committed));
    return ranks;
  }

  void sweep(faults::Fault fault, int error, Cases calls) {
    std::set<std::uint32_t> found;
    for (std::uint64_t call = calls.first; !HasFailure(); call += calls.step) {
      SCOPED_TRACE("call " + std::to_string(call));
      fs::remove_all(root_);
      fs::create_directory(root_);
      std::ofstream(file_).flush();
      make();
      const int code = run(2, two_ranks, {root_, static_cast<unsigned>(call), fault, error});
      EXPECT_NE(code, wrong);
      EXPECT_NE(code, 128 + SIGALRM) << "ranks wait for others";
      const std::uint32_t ranks = judge();
      found.insert(ranks);
      EXPECT_TRUE(code != right || ranks == 2);
      if (code == right) break;
    }
    EXPECT_EQ(found, (std::set<std::uint32_t>{1, 2}));
  }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string root_ = directory_ / "job";
  const std::string file_ = root_ + "/file";
  const std::string pool_ = root_ + "/pool";
  const std::string said_ = directory_ / "said";
  bool recovers_ = true;
};

TEST_F(FileOfOldRanks, is_at_the_version_that_other_ranks_go_on_with) {
  make();
  EXPECT_TRUE(has_parts());
  EXPECT_EQ(run(2, two_ranks), right);
  EXPECT_EQ(judge(), 2U);
}

TEST_F(FileOfOldRanks, is_at_its_version_when_they_only_look) {
  make();
  EXPECT_EQ(run(2,
                [](Pool& pool, Group&) -> Status {
                  PERDURE_TRY(open_array(pool).status());
                  return pool.restart().status();
                }),
            right);
  EXPECT_EQ(bytes_of_file(file_), GroupFileContents{1}.at(committed));
  EXPECT_EQ(judge(), 1U);
}

TEST_F(FileOfOldRanks, is_refused_by_name_where_nobody_can_recover_it) {
  make();
  recovers_ = false;
  EXPECT_EQ(run(2, two_ranks), refused);
  EXPECT_EQ(judge(), 1U);
}

TEST_F(FileOfOldRanks, that_somebody_else_has_changed_is_left_to_the_user) {
  make();
  std::ofstream(file_, std::ios::app) << "somebody else's";
  const auto before = bytes_of_file(file_);
  EXPECT_EQ(run(2, two_ranks), refused);
  EXPECT_EQ(bytes_of_file(file_), before);
  EXPECT_TRUE(has_parts());
}

TEST_F(FileOfOldRanks, with_parts_on_several_nodes_is_refused_by_name_until_its_ranks_close_it) {
  const auto nodes = [&](std::uint64_t commits, bool close) {
    return run(2, [&](Pool& pool, Group& group) { return two_nodes(pool, group, commits, close); });
  };
  ASSERT_EQ(nodes(committed, false), right);
  const auto before = bytes_of_file(file_);
  for (const std::uint32_t ranks : {1U, 3U}) {
    fs::remove(said_);
    EXPECT_EQ(run(ranks, two_ranks), refused);
    const auto bytes = bytes_of_file(said_);
    const std::string said(bytes.begin(), bytes.end());
    EXPECT_NE(said.find(file_ + " is a cached file with parts on 2 nodes"), std::string::npos)
        << said;
    EXPECT_NE(said.find("start 2 ranks, which made the pool, and close the file"),
              std::string::npos)
        << said;
    EXPECT_EQ(bytes_of_file(file_), before);
  }
  EXPECT_EQ(nodes(1, true), right);  // nothing was lost
  EXPECT_EQ(bytes_of_file(file_), GroupFileContents{2}.at(committed + 1));
  EXPECT_EQ(run(3, two_ranks), right);
  EXPECT_EQ(bytes_of_file(file_), GroupFileContents{2}.at(committed + 1));
  const auto report = inspect_pool(pool_, {.verify_data = true});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().job.ranks, 3U);
  EXPECT_EQ(report.value().version, committed + 2);
}

TEST_F(FileOfOldRanks, is_at_one_version_with_the_pool_wherever_they_are_killed) {
  sweep(faults::Fault::kill_half, 0, some_cases(1, 8));
}

TEST_F(FileOfOldRanks, is_at_one_version_with_the_pool_whatever_fails) {
  sweep(faults::Fault::fail, EIO, some_cases(1, 4));
}

}  // namespace
}  // namespace perdure
