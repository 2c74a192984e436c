// SPDX-License-Identifier: BSD-3-Clause
//
// What a start has given up, because it could not have it, does not come back when nodes do.
// ctest: ALONE LABELS truth COST 20
#include <sys/syscall.h>

#include <ctime>

#include "levels/manifest.hpp"
#include "levels_of_jobs.hpp"

namespace {

std::time_t clock_is_ahead_s = 0;

}  // namespace

// The time of day of this program, in place of the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto code = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME) now->tv_sec += clock_is_ahead_s;
  return code;
}

namespace perdure {
namespace {

// Versions 1 to 4 of four ranks, which all nodes and the drain have, but that 4 has not arrived in
// the drain. Then a start without node 3, which gives up version 4.
class GivenUp : public LevelsOfJobs {
 protected:
  GivenUp() {
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
  }
  void use(const std::string& levels) { levels_ = levels + ";patience=20s"; }
  std::string drain() const { return ";drain=" + node(9) + "/drain"; }
  int start(std::vector<std::uint32_t> nodes, std::uint64_t commits, std::uint64_t mark,
            bool wait = false) {
    testing::internal::CaptureStderr();
    const int code =
        run({.nodes = std::move(nodes), .commits = commits, .mark = mark, .wait = wait});
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  // As if the drain had not come to it.
  void take_from_drain(std::uint64_t version) const {
    const auto found = find_versions(place_of_pool(node(9) + "/drain", "pool"), std::nullopt);
    ASSERT_TRUE(found.ok() && !found.value().manifests.empty());
    ASSERT_EQ(found.value().manifests.front().id.version, version);
    fs::remove_all(found.value().manifests.front().directory);
  }
  void remove_guards(std::uint64_t version) const {
    for (const std::uint32_t number : {0U, 1U, 2U, 3U}) {
      const auto directory = Directory::open(node(number) + "/pool", Trust::own);
      for (std::uint32_t slot = 0; slot < level_files_max; ++slot) {
        const LevelFileName name{SealedKind::guard, number, slot};
        const auto file = LevelFile::open(directory.value(), name, Trust::own);
        if (!file.ok() || !file.value().whole()) continue;
        if (file.value().header().id.version == version) fs::remove(file.value().path());
      }
    }
  }
  bool is_said(const std::string& words) const { return said_.find(words) != std::string::npos; }
  void restarts_with(std::uint64_t version, std::uint64_t mark) const {
    EXPECT_EQ(found_->version, version) << said_;
    EXPECT_EQ(found_->mark, mark) << said_;
  }

  std::string said_;
};

TEST_F(GivenUp, by_a_start_from_the_drain_it_does_not_come_back_with_its_node) {
  use("redundancy=off;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  use("redundancy=off;every=100" + drain());
  ASSERT_EQ(start({0, 1, 2, 4}, 2, 2), 0);
  restarts_with(3, 1);
  ASSERT_EQ(start({0, 1, 2, 3}, 0, 0), 0);
  restarts_with(3, 1);
  EXPECT_TRUE(is_said("version 4")) << said_;
  EXPECT_TRUE(is_said("a later start went on without")) << said_;
}

TEST_F(GivenUp, what_went_on_from_the_drain_is_taken_as_far_as_it_was_drained) {
  use("redundancy=off;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  ASSERT_EQ(start({0, 1, 2, 4}, 1, 2, true), 0);
  restarts_with(3, 1);
  ASSERT_EQ(start({0, 1, 2, 3}, 0, 0), 0);
  restarts_with(4, 2);
}

// Nodes 2 and 3 come back, which can give all ranks version 4 by themselves, beside one of those
// that went on.
TEST_F(GivenUp, it_does_not_come_back_beside_a_node_of_those_that_went_on) {
  use("redundancy=rs:2+2;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  use("redundancy=off;every=1" + drain());
  lose(0);
  ASSERT_EQ(start({1, 4, 5, 6}, 2, 2, true), 0);
  restarts_with(3, 1);
  lose(1);
  ASSERT_EQ(start({4, 3, 2, 7}, 0, 0), 0);
  restarts_with(5, 2);
}

TEST_F(GivenUp, without_the_drain_it_is_refused_and_named) {
  use("redundancy=off;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  use("redundancy=off;every=100" + drain());
  ASSERT_EQ(start({0, 1, 2, 4}, 2, 2), 0);
  fs::rename(node(9), node(10));
  ASSERT_EQ(start({0, 1, 2, 3}, 0, 0), refused_code);
  EXPECT_TRUE(is_said("a later start went on without")) << said_;
  EXPECT_TRUE(is_said("a drain could not be used")) << said_;
  fs::rename(node(10), node(9));
  ASSERT_EQ(start({0, 1, 2, 3}, 0, 0), 0);
  restarts_with(3, 1);
}

TEST_F(GivenUp, by_a_start_from_images_it_does_not_come_back_with_its_node) {
  use("redundancy=partner;every=1");
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  remove_guards(4);
  use("redundancy=off");
  ASSERT_EQ(start({0, 1, 2, 4}, 2, 2), 0);
  restarts_with(3, 1);
  use("redundancy=partner;every=1");
  ASSERT_EQ(start({0, 1, 2, 3}, 0, 0), 0);
  restarts_with(3, 1);
}

// Each of two nodes goes on without the other one, with what it guards.
TEST_F(GivenUp, halves_of_a_job_that_both_went_on_keep_what_they_acknowledged) {
  use("redundancy=partner;every=1;lease=1s" + drain());
  ASSERT_EQ(start({0, 1}, 3, 1, true), 0);
  use("redundancy=partner;every=100;lease=1s" + drain());
  ASSERT_EQ(start({0, 2}, 2, 2), 0);
  restarts_with(3, 1);
  use("redundancy=partner;every=1;lease=1s" + drain());
  ASSERT_EQ(start({3, 1}, 4, 3, true), 0);
  restarts_with(3, 1);
  ASSERT_EQ(start({0, 2}, 0, 0), 0);
  restarts_with(5, 2);
  ASSERT_EQ(start({3, 1}, 0, 0), 0);
  restarts_with(7, 3);
}

// Without a drain nothing tells either of the other one. Clocks may have gone back meanwhile, so
// that both halves number their versions from those of before.
class HalvesThatMeet : public GivenUp, public testing::WithParamInterface<int> {
 protected:
  void begin() {
    use("redundancy=partner;every=1");
    clock_is_ahead_s = GetParam() * std::time_t{86400};
    ASSERT_EQ(start({0, 1}, 3, 1, true), 0);
    clock_is_ahead_s = 0;
  }
  void TearDown() override { clock_is_ahead_s = 0; }
  // A start on nodes of both: all ranks have one run's bytes, and it says that there are two.
  void meets(std::vector<std::uint32_t> nodes) {
    ASSERT_EQ(start(std::move(nodes), 0, 0), 0) << said_;
    EXPECT_EQ(found_->marks[0], found_->marks[1]) << found_->version << " " << said_;
    EXPECT_TRUE(is_said(" was brought back from images") && is_said(", because ")) << said_;
  }
};

TEST_P(HalvesThatMeet, are_not_mixed_when_each_has_what_it_guards) {
  for (const std::uint64_t more : {0U, 1U, 3U}) {
    clear();
    begin();
    ASSERT_EQ(start({0, 2}, 2, 2, true), 0) << said_;
    restarts_with(3, 1);
    ASSERT_EQ(start({3, 1}, 2 + more, 3, true), 0) << said_;
    restarts_with(3, 1);
    meets({0, 1});
    meets({3, 2});
  }
}

TEST_P(HalvesThatMeet, are_not_mixed_when_they_guard_nothing_any_more) {
  begin();
  use("redundancy=off");
  ASSERT_EQ(start({0, 2}, 2, 2), 0) << said_;
  ASSERT_EQ(start({3, 1}, 2, 3), 0) << said_;
  meets({0, 1});
}

INSTANTIATE_TEST_SUITE_P(DaysAhead, HalvesThatMeet, testing::Values(0, 10),
                         [](const auto& days) { return std::to_string(days.param); });

// Ranks moved: one's file of the run before lies on a node of those that went on, and its own is
// lost.
TEST_F(GivenUp, a_file_that_a_rank_left_does_not_take_the_place_of_its_lost_one) {
  use("redundancy=partner;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  lose(2);
  use("redundancy=partner;every=1;drain_every=100" + drain());
  ASSERT_EQ(start({3, 0, 1, 4}, 2, 2), 0) << said_;
  const std::uint64_t went_on_from = found_->version;
  lose(3);
  ASSERT_EQ(start({5, 0, 1, 4}, 0, 0), 0) << said_;
  EXPECT_GT(found_->version, went_on_from) << said_;  // the newest may not have its redundancy yet
  EXPECT_EQ(found_->mark, 2U) << said_;
}

TEST_F(GivenUp, files_that_all_ranks_left_do_not_take_the_place_of_images_of_those_that_went_on) {
  use("redundancy=off;every=1" + drain());
  ASSERT_EQ(start({0, 1, 2, 3}, 4, 1, true), 0);
  take_from_drain(4);
  use("redundancy=partner;every=1" + drain());
  ASSERT_EQ(start({4, 5, 6, 0}, 2, 2, true), 0);
  restarts_with(3, 1);
  ASSERT_EQ(start({1, 2, 3, 0}, 0, 0), 0) << said_;
  restarts_with(5, 2);
}

TEST_F(GivenUp, nodes_that_have_nothing_begin_anew_where_nothing_was_drained) {
  use("redundancy=partner;every=1;drain_every=100;lease=1s" + drain());
  ASSERT_EQ(start({0, 1}, 1, 1), 0);
  ASSERT_EQ(start({0, 2}, 1, 2), 0);
  restarts_with(1, 1);
  ASSERT_EQ(start({5, 6}, 1, 3), 0) << said_;
  restarts_with(0, 0);
  ASSERT_EQ(start({0, 2}, 0, 0), 0) << said_;
  restarts_with(2, 2);
}

// Ranks that moved left images on their nodes.
TEST_F(GivenUp, by_a_restore_it_does_not_come_back_from_nodes_that_ranks_left) {
  use("redundancy=partner;every=1");
  ASSERT_EQ(run({.nodes = {0, 1}, .commits = 3, .mark = 1, .wait = true}), 0);
  use("redundancy=off");
  ASSERT_EQ(run({.nodes = {1, 0}, .restore = 2, .commits = 1, .mark = 2}), 0);
  fs::remove(node(1) + "/pool/rank-00000");
  ASSERT_EQ(run({.nodes = {1, 0}}), 0);
  restarts_with(2, 1);
}

}  // namespace
}  // namespace perdure
