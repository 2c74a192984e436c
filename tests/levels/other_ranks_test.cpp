// SPDX-License-Identifier: BSD-3-Clause
//
// Another number of ranks, of a job whose nodes have directories of their own: what comes back from
// a drain, or from what the nodes hold after some were lost, is what a gather by hand would give.
// ctest: DEPS rank_job levels LABELS truth TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "levels/manifest.hpp"
#include "pool/inspect.hpp"
#include "rank_job.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

void expect_right(const JobResult& result) {
  EXPECT_TRUE(result.opened.ok()) << result.opened.message();
  for (const std::string& what : result.wrong) ADD_FAILURE() << what;
}

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(directory)) names.insert(each.path().filename());
  return names;
}

class OtherRanks : public testing::Test {
 protected:
  // Each rank has a node of its own, from node 0 on, as far as there are nodes.
  JobRun run_of(std::uint32_t ranks, std::uint64_t number) const {
    JobRun run{base_ / "nodes", ranks, test_seed() + 13 * number};
    run.levels = levels_;
    run.keep = static_cast<std::uint32_t>(1 + number % 2);
    run.mode = number % 3 == 0 ? ArrayMode::twin : ArrayMode::copy;
    run.checksums = number % 2 == 0;
    run.nodes.resize(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) run.nodes[rank] = rank % nodes_;
    return run;
  }
  void begin() const {
    fs::remove_all(base_ / "nodes");
    fs::remove_all(base_ / "drain");
  }
  void lose(std::uint32_t node) const { fs::remove_all(base_ / ("nodes/" + std::to_string(node))); }
  FoundVersions drained() const {
    return find_versions(place_of_pool(base_ / "drain", base_ / "nodes/0/pool"), std::nullopt)
        .take();
  }
  // A pool of these ranks and nothing else that says who has it.
  void expect_pool_of(const JobRun& run) const {
    for (std::uint32_t rank = 0; rank < run.ranks; ++rank) {
      const auto directory = Directory::open(pool_on(run, run.nodes[rank])).take();
      const JobRecord job = read_job_record(directory).value();
      EXPECT_EQ(job.ranks, run.ranks);
      for (const std::string& name : names_in(directory.path())) {
        EXPECT_FALSE(rank_of_next_file(name) || is_unfinished(name)) << name;
        const auto of = rank_of_file(name);
        EXPECT_TRUE(!of || run.nodes[*of] == run.nodes[rank]) << name << " on " << rank;
      }
    }
  }
  // `restored`: what the change must find.
  void change(const JobRun& before, std::uint32_t ranks, std::uint64_t restored) {
    JobRun run = run_of(ranks, before.seed % 100 + ranks);
    run.keep = 0;
    run.before = boxes_of_run(before.seed, before.ranks);
    run.cells_of_ranks = true;
    const JobResult changed = run_job(run, 2);
    expect_right(changed);
    EXPECT_EQ(changed.restored, restored);
    if (!changed.opened.ok()) return;
    expect_pool_of(run);
    run.before.reset();
    const JobResult again = run_job(run, 1);
    expect_right(again);
    EXPECT_EQ(again.restored, restored + 2);
  }

  // Every number of ranks up to 8 and every other; some of them, unless it is a long test.
  template <typename Body>
  void each_pair(std::uint64_t sampled, const Body& body) {
    const std::uint64_t step = slow_tests() ? 1 : sampled;
    std::uint64_t number = test_seed() % step;
    for (std::uint32_t old = 1; old <= 8; ++old) {
      for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
        if (old == ranks || number++ % step != 0) continue;
        SCOPED_TRACE(std::to_string(old) + " to " + std::to_string(ranks));
        begin();
        body(old, ranks);
        if (HasFailure()) return;
      }
    }
  }
  struct Loss {
    std::string scheme;
    std::uint32_t old;
    std::vector<std::uint32_t> lost;
    std::uint32_t ranks;
  };
  void change_after(const Loss& each) {
    levels_ = "redundancy=" + each.scheme + ";drain=" + base_ / "drain" +
              ";every=1;drain_every=1000;patience=20s";
    JobRun run = run_of(each.old, each.old);
    run.cells_of_ranks = true;
    expect_right(run_job(run, 3));
    EXPECT_TRUE(drained().manifests.empty());
    for (const std::uint32_t node : each.lost) lose(node);
    // The nodes that are left come first, and new ones take the others' places.
    JobRun changed = run_of(each.ranks, 2 * each.old);
    std::uint32_t next = 0;
    for (std::uint32_t& node : changed.nodes) {
      while (std::ranges::find(each.lost, next) != each.lost.end()) ++next;
      node = next++;
    }
    changed.keep = 0;
    if (each.ranks <= 2) changed.levels = "redundancy=off;patience=20s;drain=" + base_ / "drain";
    changed.before = boxes_of_run(run.seed, run.ranks);
    changed.cells_of_ranks = true;
    const JobResult result = run_job(changed, 2);
    expect_right(result);
    EXPECT_EQ(result.restored, 3U);
    if (!result.opened.ok()) return;
    expect_pool_of(changed);
    EXPECT_FALSE(drained().manifests.empty());
    changed.before.reset();
    const JobResult again = run_job(changed, 1);
    expect_right(again);
    EXPECT_EQ(again.restored, 5U);
  }

  perdure_test::TemporaryDirectory base_;
  std::string levels_ = "redundancy=off;drain=" + base_ / "drain" + ";every=1;patience=20s";
  std::uint32_t nodes_ = 8;
};

TEST_F(OtherRanks, go_on_from_a_drain_when_all_nodes_are_lost) {
  each_pair(5, [&](std::uint32_t old, std::uint32_t ranks) {
    JobRun run = run_of(old, old + ranks);
    run.cells_of_ranks = true;
    expect_right(run_job(run, 3));
    for (std::uint32_t node = 0; node < old; ++node) lose(node);
    change(run, ranks, 3);
  });
}

TEST_F(OtherRanks, go_on_from_rank_files_of_nodes_that_are_all_there) {
  levels_ += ";drain_every=1000";
  each_pair(7, [&](std::uint32_t old, std::uint32_t ranks) {
    nodes_ = std::min(old, ranks);
    JobRun run = run_of(old, old);
    run.cells_of_ranks = true;
    expect_right(run_job(run, 3));
    EXPECT_TRUE(drained().manifests.empty());
    change(run, ranks, 3);
  });
}

// The nodes that are left hold images and guards, and no rank's file of those that are lost.
TEST_F(OtherRanks, go_on_from_images_that_are_rebuilt_after_nodes_were_lost) {
  const std::vector<Loss> losses = {{"partner", 2, {1}, 1},    {"partner", 4, {1}, 3},
                                    {"partner", 4, {0, 1}, 2}, {"xor:3", 3, {0}, 2},
                                    {"xor:4", 4, {3}, 8},      {"xor:4", 8, {0, 7}, 6},
                                    {"rs:2+2", 4, {0, 3}, 2},  {"rs:2+2", 4, {1}, 3},
                                    {"rs:2+2", 4, {1, 2}, 7},  {"partner", 8, {0, 3, 6}, 5}};
  for (const Loss& each : losses) {
    SCOPED_TRACE(each.scheme + ", " + std::to_string(each.old) + " to " +
                 std::to_string(each.ranks));
    begin();
    change_after(each);
    if (HasFailure()) return;
  }
}

// Each scheme that the old ranks can have, on no more nodes than the new ones have, and one that is
// lost.
TEST_F(OtherRanks, go_on_from_images_of_every_number_and_every_scheme) {
  std::mt19937_64 random(test_seed());
  std::uint32_t tried = 0;
  each_pair(9, [&](std::uint32_t old, std::uint32_t ranks) {
    nodes_ = std::min(old, ranks + 1);
    for (const auto& [scheme, members] :
         {std::pair{"partner", 2U}, {"xor:3", 3U}, {"rs:2+2", 4U}}) {
      const std::uint32_t on_one_node = (old + nodes_ - 1) / nodes_;
      if (nodes_ < members || on_one_node * members > old) continue;
      SCOPED_TRACE(scheme);
      begin();
      const auto lost = static_cast<std::uint32_t>(random() % nodes_);
      change_after({scheme, old, {lost}, ranks});
      ++tried;
      if (HasFailure()) return;
    }
  });
  EXPECT_GT(tried, 0U);
}

TEST_F(OtherRanks, go_on_where_all_see_one_directory_whatever_levels_there_are) {
  levels_ = "redundancy=partner;every=1;patience=20s";
  JobRun run = run_of(3, 1);
  run.directory = base_ / "shared";
  const auto place = [&](JobRun& it) {
    it.directory = base_ / "shared";
    it.one_directory = true;
  };
  place(run);
  expect_right(run_job(run, 2));
  JobRun changed = run_of(2, 2);
  place(changed);
  changed.keep = 0;
  const JobResult result = run_job(changed, 1);
  expect_right(result);
  EXPECT_EQ(result.restored, 2U);
  for (const std::string& name : names_in(pool_on(changed, 0))) {
    const auto file = parse_level_file_name(name);
    EXPECT_TRUE(!file || file->rank < 2) << name;
  }
}

TEST_F(OtherRanks, are_refused_without_a_drain_and_the_pool_stays) {
  levels_ = "redundancy=partner;every=1;patience=20s";
  const JobRun run = run_of(3, 1);
  expect_right(run_job(run, 2));
  JobRun changed = run_of(2, 2);
  changed.keep = 0;
  const JobResult refused = run_job(changed, 1);
  EXPECT_EQ(refused.opened.code(), Code::rank_mismatch);
  EXPECT_NE(refused.opened.message().find("add drain=DIRECTORY to PERDURE_LEVELS"),
            std::string::npos)
      << refused.opened.message();
  const JobResult again = run_job(run, 1);
  expect_right(again);
  EXPECT_EQ(again.restored, 2U);
}

// Nobody said levels: the first start that does brings what the nodes have to the drain.
TEST_F(OtherRanks, go_on_from_nodes_that_had_no_levels_once_there_is_a_drain) {
  const std::string with_drain = std::exchange(levels_, "");
  const JobRun run = run_of(3, 1);
  expect_right(run_job(run, 2));
  JobRun changed = run_of(2, 2);
  changed.keep = 0;
  const JobResult refused = run_job(changed, 1);
  EXPECT_EQ(refused.opened.code(), Code::not_found);
  EXPECT_NE(refused.opened.message().find("drain=DIRECTORY in PERDURE_LEVELS"), std::string::npos)
      << refused.opened.message();
  const JobResult again = run_job(run, 1);
  expect_right(again);
  EXPECT_EQ(again.restored, 2U);
  levels_ = with_drain;
  changed = run_of(4, 2);
  changed.keep = 0;
  const JobResult at_last = run_job(changed, 1);
  expect_right(at_last);
  EXPECT_EQ(at_last.restored, 3U);
}

TEST_F(OtherRanks, change_nothing_before_their_first_commit) {
  const JobRun run = run_of(4, 1);
  expect_right(run_job(run, 2));
  JobRun changed = run_of(3, 2);
  changed.keep = 0;
  for (int i = 0; i < 2; ++i) {
    const JobResult looked = run_job(changed, 0);
    expect_right(looked);
    EXPECT_EQ(looked.restored, 2U);
  }
  const JobResult again = run_job(run, 1);
  expect_right(again);
  EXPECT_EQ(again.restored, 2U);
  changed.seed += 1;
  const JobResult at_last = run_job(changed, 1);
  expect_right(at_last);
  EXPECT_EQ(at_last.restored, 3U);
}

TEST_F(OtherRanks, change_again_and_again_and_the_drain_keeps_what_it_must) {
  std::uint64_t newest = 0;
  std::uint64_t number = 1;
  for (const std::uint32_t ranks : {4U, 2U, 5U, 1U, 3U, 4U}) {
    JobRun run = run_of(ranks, number++);
    run.keep = newest == 0 ? 1 : 0;
    const JobResult result = run_job(run, 2);
    expect_right(result);
    EXPECT_EQ(result.restored, newest);
    newest += 2;
    EXPECT_EQ(result.newest, newest);
    const auto found = drained();
    ASSERT_FALSE(found.manifests.empty());
    EXPECT_EQ(found.manifests.front().id.version, newest);
    EXPECT_EQ(found.manifests.front().job.ranks, ranks);
    EXPECT_GE(found.manifests.size(), 2U);
  }
}

// A crash left the new record on one node only.
TEST_F(OtherRanks, a_record_on_one_node_says_that_the_new_pool_is_whole) {
  const JobRun run = run_of(3, 1);
  expect_right(run_job(run, 2));
  const JobRecord old = read_job_record(Directory::open(pool_on(run, 0)).take()).value();
  JobRun changed = run_of(2, 2);
  changed.keep = 0;
  expect_right(run_job(changed, 1));
  // Node 1 as it was before its rename, and its file by the name of before.
  const Directory there = Directory::open(pool_on(run, 1)).take();
  ASSERT_TRUE(there.rename_file(rank_file_name(1), next_rank_file_name(1)).ok());
  ASSERT_TRUE(write_job_record(there, old, 1).ok());
  const JobResult again = run_job(changed, 1);
  expect_right(again);
  EXPECT_EQ(again.restored, 3U);
  expect_pool_of(changed);
}

TEST_F(OtherRanks, a_drain_of_others_is_refused_unless_any_number_is_accepted) {
  const JobRun run = run_of(3, 1);
  expect_right(run_job(run, 2));
  for (std::uint32_t node = 0; node < 3; ++node) lose(node);
  JobRun changed = run_of(2, 2);
  changed.any_ranks = false;
  const JobResult refused = run_job(changed, 1);
  EXPECT_EQ(refused.opened.code(), Code::rank_mismatch);
  EXPECT_NE(refused.opened.message().find("holds version 2 of 3 ranks, this job has 2"),
            std::string::npos)
      << refused.opened.message();
}

TEST_F(OtherRanks, a_damaged_drained_version_counts_as_lost_and_the_one_before_is_divided) {
  const JobRun run = run_of(3, 1);
  expect_right(run_job(run, 3));
  for (std::uint32_t node = 0; node < 3; ++node) lose(node);
  const Manifest newest = drained().manifests.front();
  const std::string path = newest.directory + "/" + node_file_name(2);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path)) - 600);
    file.put('\x55').put('\x55').put('\x55');
  }
  JobRun changed = run_of(2, 2);
  changed.keep = 0;
  const JobResult result = run_job(changed, 1);
  expect_right(result);
  EXPECT_EQ(result.restored, 2U);
}

}  // namespace
}  // namespace perdure
