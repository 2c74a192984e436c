// SPDX-License-Identifier: BSD-3-Clause
//
// A job of another number of ranks, on nodes with directories of their own, is killed at every call
// that changes a file of a node or of the drain. What comes back then, on whatever number of ranks
// and with whatever nodes lost, is the old version or the new one, whole.
// ctest: DEPS rank_job levels IN fault_calls LABELS truth TIMEOUT 300 LONG 7200
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <set>

#include "levels/testing/fault_calls.hpp"
#include "pool/inspect.hpp"
#include "rank_job.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

struct Change {
  std::uint32_t old;
  std::uint32_t ranks;
  const char* levels;
  std::uint32_t lost;  // a node that the change has not got; 99: none
};

constexpr int right = 0;
constexpr int wrong = 3;
constexpr int refused = 4;

class OtherRanksKill : public testing::TestWithParam<Change> {
 protected:
  OtherRanksKill() {
    const JobResult made = run_job(run_of(GetParam().old, 0), 3);
    EXPECT_TRUE(made.opened.ok()) << made.opened.message();
    fs::rename(root_, base_ / "template");
  }

  JobRun run_of(std::uint32_t ranks, std::uint64_t number) const {
    JobRun run{root_ + "/nodes", ranks, test_seed() + 7 * number};
    run.levels = std::string(GetParam().levels) + ";drain=" + root_ + "/drain;patience=20s";
    run.late = true;
    run.nodes.resize(ranks);
    std::iota(run.nodes.begin(), run.nodes.end(), 0U);
    return run;
  }

  static bool is_drained() {
    return std::string(GetParam().levels).find("drain_every") == std::string::npos;
  }

  // As the template was; all paths are those of its time.
  void begin() const {
    fs::remove_all(root_);
    fs::copy(base_ / "template", root_, fs::copy_options::recursive);
    for (std::uint32_t node = 0; node < GetParam().old; ++node) {
      const Status adopted = adopt_pool(pool_on(run_of(1, 0), node));
      EXPECT_TRUE(adopted.ok()) << adopted.message();
    }
    if (GetParam().lost != 99) lose(GetParam().lost);
  }
  void lose(std::uint32_t node) const { fs::remove_all(root_ + "/nodes/" + std::to_string(node)); }

  // The change, in a process of its own: how it ended.
  int change(std::uint64_t call) const {
    const pid_t child = ::fork();
    if (child != 0) {
      int state = 0;
      EXPECT_EQ(::waitpid(child, &state, 0), child);
      return state;
    }
    ::alarm(60);  // ranks that wait for others that do not come
    faults::set_plan({root_, static_cast<unsigned>(call), faults::Fault::kill_half});
    const JobResult result = run_job(run_of(GetParam().ranks, 1), 1);
    faults::set_plan({});
    for (const std::string& what : result.wrong) std::fprintf(stderr, "%s\n", what.c_str());
    if (!result.wrong.empty()) ::_exit(wrong);
    if (!result.opened.ok()) std::fprintf(stderr, "%s\n", result.opened.message().c_str());
    ::_exit(result.opened.ok() ? right : refused);
  }

  // Which version came back; 0: none, which is a failure.
  std::uint64_t goes_on(std::uint32_t ranks) const {
    const JobResult result = run_job(run_of(ranks, 2), 1);
    EXPECT_TRUE(result.opened.ok()) << result.opened.message();
    for (const std::string& what : result.wrong) ADD_FAILURE() << what;
    EXPECT_EQ(result.newest, result.restored + 1);
    return result.restored;
  }

  perdure_test::TemporaryDirectory base_;
  std::string root_ = base_ / "root";
};

TEST_P(OtherRanksKill, at_each_call_that_changes_a_file) {
  const Cases cases = some_cases(1, 37);
  const std::uint32_t next[] = {GetParam().old, GetParam().ranks, 5};
  std::set<std::uint64_t> found;
  std::uint64_t kills = 0;
  for (std::uint64_t call = cases.first, i = 0; !HasFailure(); call += cases.step, ++i) {
    SCOPED_TRACE("call " + std::to_string(call));
    begin();
    const int state = change(call);
    const bool ended = WIFEXITED(state) && WEXITSTATUS(state) == right;
    EXPECT_FALSE(WIFEXITED(state) && !ended) << WEXITSTATUS(state);
    EXPECT_FALSE(WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM) << "ranks wait for others";
    if (i % 4 == 3 && is_drained()) {  // what only nodes have is lost with them
      for (std::uint32_t node = 0; node < 8; ++node) lose(node);
    }
    const std::uint64_t version = goes_on(next[i % 3]);
    EXPECT_TRUE(version == 3 || version == 4) << version;
    EXPECT_TRUE(!ended || version == 4) << version;
    found.insert(version);
    kills += WIFSIGNALED(state) ? 1U : 0U;
    if (ended) break;
  }
  std::printf("%llu kills\n", static_cast<unsigned long long>(kills));
  EXPECT_EQ(found, (std::set<std::uint64_t>{3, 4}));
}

INSTANTIATE_TEST_SUITE_P(
    pairs, OtherRanksKill,
    testing::Values(Change{3, 2, "redundancy=off;every=1", 99},
                    Change{2, 3, "redundancy=off;every=1", 0},
                    Change{3, 2, "redundancy=xor:3;every=1;drain_every=1000", 2}),
    [](const auto& each) {
      return std::to_string(each.param.old) + "_to_" + std::to_string(each.param.ranks) +
             (each.param.lost == 99 ? "" : "_without_" + std::to_string(each.param.lost));
    });

}  // namespace
}  // namespace perdure
