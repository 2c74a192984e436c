// SPDX-License-Identifier: BSD-3-Clause
//
// A job on another number of ranks is killed at every call that changes a file, and at every call
// of a device, with ranks that come at other times to each exchange; and files fail. What is found
// then is the old pool or the new one, whole, and every number of ranks goes on with it.
// ctest: DEPS rank_job levels IN fault_calls LABELS truth TIMEOUT 600
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "levels/testing/fault_calls.hpp"
#include "losing_device.hpp"
#include "pool/inspect.hpp"
#include "rank_job.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

struct Change {
  std::uint32_t old;
  std::uint32_t ranks;
  ArrayMode mode;
  bool one_by_one = false;
};

// What is killed, or fails.
struct Blow {
  faults::Plan files;
  std::uint64_t device_call = 0;
  bool loses = false;
};

constexpr int right = 0;
constexpr int wrong = 3;
constexpr int refused = 4;

class RankChangeKill : public testing::TestWithParam<Change> {
 protected:
  RankChangeKill() {
    JobRun run = run_of(GetParam().old, 0);
    run.directory = directory_ / "template";
    const JobResult made = run_job(run, 3);
    EXPECT_TRUE(made.opened.ok()) << made.opened.message();
    EXPECT_TRUE(made.wrong.empty()) << made.wrong.front();
  }

  JobRun run_of(std::uint32_t ranks, std::uint64_t number) const {
    JobRun run{pool_, ranks, test_seed() + 7 * number, GetParam().mode};
    run.keep = 1 + static_cast<std::uint32_t>(GetParam().old % 2);
    run.late = true;
    run.one_by_one = GetParam().one_by_one;
    return run;
  }

  // The change, in a process of its own: how it ended.
  int change(const Blow& blow) {
    const pid_t child = ::fork();
    if (child != 0) {
      int state = 0;
      EXPECT_EQ(::waitpid(child, &state, 0), child);
      return state;
    }
    ::alarm(60);  // ranks that wait for others that do not come
    JobRun run = run_of(GetParam().ranks, 1);
    run.around = [&](std::unique_ptr<Device> file) -> std::unique_ptr<Device> {
      return std::make_unique<LosingDevice>(std::move(file), blow.loses);
    };
    DeviceKill::at = blow.device_call;
    faults::set_plan(blow.files);
    const JobResult result = run_job(run, 1);
    faults::set_plan({});
    if (!result.wrong.empty() && blow.files.fault != faults::Fault::fail) {
      for (const std::string& what : result.wrong) std::fprintf(stderr, "%s\n", what.c_str());
      ::_exit(wrong);
    }
    ::_exit(result.opened.ok() && result.wrong.empty() ? right : refused);
  }

  void begin() {
    fs::remove_all(pool_);
    fs::copy(directory_ / "template", pool_);
    EXPECT_TRUE(adopt_pool(pool_).ok());
  }

  // Whoever looks finds the old pool or the new one, and can remove it.
  std::uint64_t look() {
    const auto report = inspect_pool(pool_, {.verify_data = true});
    EXPECT_TRUE(report.ok()) << report.status().message();
    if (!report.ok()) return 0;
    EXPECT_NE(report.value().worst(), Severity::damage) << first_finding(report.value());
    const std::uint64_t version = report.value().version.value_or(0);
    const std::uint32_t ranks = version == 4 ? GetParam().ranks : GetParam().old;
    EXPECT_TRUE(version == 3 || version == 4) << version;
    EXPECT_EQ(report.value().job.ranks, ranks);
    EXPECT_EQ(report.value().ranks.size(), ranks);
    EXPECT_TRUE(dump_array(pool_, ranks - 1, "cells").ok());
    const std::string copy = directory_ / "copy";
    fs::remove_all(copy);
    fs::copy(pool_, copy);
    const Status removed = remove_pool(copy);
    EXPECT_TRUE(removed.ok()) << removed.message();
    EXPECT_FALSE(fs::exists(copy));
    return version;
  }
  static std::string first_finding(const PoolReport& report) {
    for (const RankReport& rank : report.ranks) {
      for (const Finding& each : rank.findings) {
        if (each.severity == Severity::damage) return rank.path + ": " + each.text;
      }
    }
    return report.findings.empty() ? "" : report.findings.front().text;
  }

  void goes_on(std::uint32_t ranks, std::uint64_t version) {
    const JobResult result = run_job(run_of(ranks, 2), 1);
    EXPECT_TRUE(result.opened.ok()) << result.opened.message();
    for (const std::string& what : result.wrong) ADD_FAILURE() << what;
    EXPECT_EQ(result.restored, version);
    EXPECT_EQ(result.newest, version + 1);
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(pool_)) names.insert(each.path().filename());
    EXPECT_EQ(names.size(), ranks + 1) << *names.rbegin();
  }

  // Until a change ends by itself.
  void sweep(const std::function<Blow(std::uint64_t call)>& blow_at, std::uint64_t step) {
    const Cases cases = some_cases(1, step);
    const std::uint32_t next[] = {GetParam().old, GetParam().ranks, 5};
    std::set<std::uint64_t> found;
    for (std::uint64_t call = cases.first, i = 0; !HasFailure(); call += cases.step, ++i) {
      SCOPED_TRACE("call " + std::to_string(call));
      begin();
      const int state = change(blow_at(call));
      const bool ended = WIFEXITED(state) && WEXITSTATUS(state) == right;
      EXPECT_FALSE(WIFEXITED(state) && WEXITSTATUS(state) == wrong);
      EXPECT_FALSE(WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM) << "ranks wait for others";
      const std::uint64_t version = look();
      EXPECT_TRUE(!ended || version == 4) << version;
      goes_on(next[i % 3], version);
      found.insert(version);
      if (ended) break;
    }
    EXPECT_EQ(found, (std::set<std::uint64_t>{3, 4}));
  }

  perdure_test::TemporaryDirectory directory_;
  std::string pool_ = directory_ / "pool";
};

TEST_P(RankChangeKill, at_each_call_that_changes_a_file) {
  sweep(
      [&](std::uint64_t call) {
        return Blow{{pool_, static_cast<unsigned>(call), faults::Fault::kill_half}};
      },
      1);
}

TEST_P(RankChangeKill, at_each_call_of_a_device_whose_bytes_stay) {
  sweep([](std::uint64_t call) { return Blow{{}, call, false}; }, 5);
}

TEST_P(RankChangeKill, at_each_call_of_a_device_that_loses_what_is_not_durable) {
  sweep([](std::uint64_t call) { return Blow{{}, call, true}; }, 5);
}

TEST_P(RankChangeKill, each_call_that_changes_a_file_fails_from_some_time_on) {
  sweep(
      [&](std::uint64_t call) {
        return Blow{{pool_, static_cast<unsigned>(call), faults::Fault::fail, EIO}};
      },
      1);
}

INSTANTIATE_TEST_SUITE_P(
    pairs, RankChangeKill,
    testing::Values(Change{1, 2, ArrayMode::copy}, Change{2, 1, ArrayMode::twin},
                    Change{3, 2, ArrayMode::log}, Change{2, 3, ArrayMode::twin},
                    Change{2, 1, ArrayMode::copy, true}, Change{3, 2, ArrayMode::twin, true}),
    [](const auto& each) {
      return std::to_string(each.param.old) + "_to_" + std::to_string(each.param.ranks) +
             (each.param.one_by_one ? "_one_by_one" : "");
    });

}  // namespace
}  // namespace perdure
