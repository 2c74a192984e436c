// SPDX-License-Identifier: BSD-3-Clause
//
// What `perdure pool verify` says of a job with a node for each rank, whole, and with files that
// are lost, cut short, flipped, or another job's.
#include "levels/verify.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/thread_group.hpp"
#include "levels/levels.hpp"
#include "levels/node_file_format.hpp"
#include "levels/sealed_format.hpp"
#include "pool/pool_directory.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

using Ranks = std::vector<std::uint32_t>;

class VerifiedJob : public testing::Test {
 protected:
  std::string node(std::uint32_t number) const { return root_ + "/" + std::to_string(number); }
  std::string pool(std::uint32_t number) const { return node(number) + "/pool"; }

  // Starts the job on these nodes, restores `restore` if it is a version, commits, and ends it.
  // Every level has the last version.
  void run(const Ranks& nodes, int commits, std::uint64_t restore = 0) {
    ThreadJob job(nodes);
    job.run([&](ThreadGroup& group) {
      const Status done = run_rank(group, nodes[group.rank()], commits, restore);
      EXPECT_TRUE(done.ok()) << done.message();
    });
  }
  LevelsReport verify(std::uint32_t nodes, bool data = true) const {
    std::vector<std::string> pools;
    for (std::uint32_t i = 0; i < nodes; ++i) pools.push_back(pool(i));
    auto report = verify_levels(pools, {.drains = drains_, .data = data});
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.take() : LevelsReport{};
  }
  // The file of this kind on a node that holds a version.
  std::string file_of(std::uint32_t number, SealedKind kind, std::uint64_t version) const {
    const auto directory = Directory::open(pool(number)).take();
    const auto names = directory.names();
    for (const std::string& name : names.value()) {
      const auto parsed = parse_level_file_name(name);
      if (!parsed || parsed->kind != kind) continue;
      const auto file = LevelFile::open(directory, *parsed, Trust::own);
      const bool it = file.ok() && file.value().whole();
      if (it && file.value().header().id.version == version) return directory.path_of(name);
    }
    ADD_FAILURE() << "no such file on node " << number;
    return "";
  }
  static void flip(const std::string& path, std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.peek() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
  static void expect_restart(const RestartVersion& outcome, RestartLevel level,
                             std::uint64_t version) {
    EXPECT_EQ(outcome.level, level);
    EXPECT_EQ(outcome.id.version, version);
  }

  std::string levels_ = "redundancy=xor:3;every=100;patience=20s";
  std::vector<std::string> drains_;
  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string& root_ = directory_.path();

 private:
  Status run_rank(Group& group, std::uint32_t number, int commits, std::uint64_t restore) {
    PERDURE_TRY(Directory::make(node(number)).status());
    PERDURE_TRY_ASSIGN(const auto settings, parse_level_settings(levels_));
    PERDURE_TRY_ASSIGN(auto levels, Levels::create(group, pool(number), settings, Trust::own));
    OpenOptions options;
    options.job_name = "job";
    options.keep = 3;
    options.geometry = {16384, 4096, 4096, 4};
    options.pool.taker = levels.get();
    PERDURE_TRY_ASSIGN(auto pool, levels->open(options));
    const ArrayShape shape{ArrayType::int64, ArrayMode::copy, true, {100}};
    PERDURE_TRY_ASSIGN(auto* array, pool->open_array("u", shape, {}));
    if (restore > 0) {
      PERDURE_TRY(pool->restore(restore));
    } else {
      PERDURE_TRY(pool->restart().status());
    }
    for (int i = 0; i < commits; ++i) {
      *reinterpret_cast<std::uint64_t*>(array->working()) = pool->next_version();
      if (i + 1 == commits) levels->take_next();
      PERDURE_TRY(pool->commit().status());
    }
    levels->close();
    return Status::success();
  }
};

TEST_F(VerifiedJob, a_whole_job_bears_what_its_scheme_says_and_each_node_is_told) {
  run({0, 1, 2, 3, 4, 5}, 5);
  const LevelsReport report = verify(6);
  EXPECT_TRUE(report.problems.empty());
  ASSERT_FALSE(report.kept.empty());
  const KeptVersion& kept = report.kept.front();
  EXPECT_EQ(kept.id.version, 5U);
  ASSERT_EQ(kept.groups.size(), 2U);
  for (const KeptGroup& group : kept.groups) {
    EXPECT_EQ(group.scheme, "xor:3");
    EXPECT_EQ(group.left(), 1U);
    EXPECT_TRUE(group.missing.empty());
  }
  EXPECT_EQ(kept.losses, 1U);
  expect_restart(report.now, RestartLevel::pool, 5);
  for (std::uint32_t i = 0; i < 6; ++i) {
    const VerifiedNode& node = report.nodes[i];
    EXPECT_EQ(node.ranks, Ranks{i});
    EXPECT_EQ(node.kept.front().images, Ranks{i});
    EXPECT_EQ(node.kept.front().guards, Ranks{i});
    expect_restart(node.without, RestartLevel::nodes, 5);
  }
  expect_restart(report.without_all, RestartLevel::none, 0);
}

TEST_F(VerifiedJob, a_directory_that_is_named_twice_is_one_node) {
  levels_ = "redundancy=partner;every=100;patience=20s";
  run({0, 1}, 1);
  const std::string again = pool(0) + "/../pool/";
  const auto report = verify_levels({pool(0), again}, {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().nodes.size(), 1U);
  EXPECT_TRUE(report.value().kept.front().restorable);
  EXPECT_EQ(report.value().kept.front().losses, 0U);
}

TEST_F(VerifiedJob, a_lost_node_is_missing_from_its_group_and_no_other_of_it_may_be_lost) {
  run({0, 1, 2, 3, 4, 5}, 4);
  const Ranks group = verify(6).kept.front().groups.front().members;
  fs::remove_all(node(group[1]));
  const LevelsReport report = verify(6);
  EXPECT_TRUE(report.problems.empty());
  const KeptVersion& kept = report.kept.front();
  EXPECT_EQ(kept.groups.front().missing, Ranks{group[1]});
  EXPECT_EQ(kept.groups.front().left(), 0U);
  EXPECT_EQ(kept.groups.back().left(), 1U);
  EXPECT_TRUE(kept.restorable);
  EXPECT_EQ(kept.losses, 0U);
  EXPECT_FALSE(report.nodes[group[1]].pool);
  expect_restart(report.now, RestartLevel::nodes, 4);
  for (const std::uint32_t member : {group[0], group[2]}) {
    EXPECT_NE(report.nodes[member].without.id.version, 4U) << "node " << member;
  }
  expect_restart(report.nodes[kept.groups.back().members[0]].without, RestartLevel::nodes, 4);
}

// What is done to a file, and whether it is a problem; in any case it counts as lost.
struct Harm {
  const char* name;
  void (*harm)(const std::string& path);
  bool problem;
};

TEST_F(VerifiedJob, a_file_that_is_not_whole_counts_as_lost_and_is_named_if_it_is_damaged) {
  const Harm harms[] = {
      {"removed", [](const std::string& path) { fs::remove(path); }, false},
      {"being made",
       [](const std::string& path) {
         std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
             .write("\0\0\0\0\0\0\0\0", 8);
       },
       false},
      {"cut short", [](const std::string& path) { fs::resize_file(path, 2048); }, true},
      {"its payload cut off",
       [](const std::string& path) { fs::resize_file(path, sealed_payload_offset + 8); }, true},
      {"a bit of the state word", [](const std::string& path) { flip(path, 3); }, true},
      {"a bit of the header",
       [](const std::string& path) { flip(path, sealed_header_offset + 40); }, true},
      {"a bit of the payload",
       [](const std::string& path) { flip(path, sealed_payload_offset + 100); }, true},
  };
  run({0, 1, 2}, 2);
  fs::copy(node(1), root_ + "/kept", fs::copy_options::recursive);
  for (const Harm& harm : harms) {
    for (const SealedKind kind : {SealedKind::image, SealedKind::guard}) {
      SCOPED_TRACE(std::string(harm.name) + (kind == SealedKind::image ? ", image" : ", guard"));
      const std::string path = file_of(1, kind, 2);
      harm.harm(path);
      const LevelsReport report = verify(3);
      EXPECT_EQ(report.problems.size(), harm.problem ? 1U : 0U);
      if (harm.problem) {
        EXPECT_NE(report.problems.at(0).find(path), std::string::npos);
      }
      const KeptVersion& kept = report.kept.front();
      EXPECT_EQ(kind == SealedKind::image ? kept.images : kept.guards, (Ranks{0, 2}));
      EXPECT_EQ(kept.groups.front().missing, Ranks{1});
      EXPECT_EQ(kept.losses, 0U);
      expect_restart(report.now, RestartLevel::pool, 2);
      fs::remove_all(node(1));
      fs::copy(root_ + "/kept", node(1), fs::copy_options::recursive);
    }
  }
  EXPECT_EQ(verify(3).kept.front().losses, 1U);
}

TEST_F(VerifiedJob, files_of_another_job_are_named_and_do_not_count) {
  run({0, 1, 2}, 2);
  fs::rename(root_ + "/0", root_ + "/first");
  fs::remove_all(node(1));
  fs::remove_all(node(2));
  run({0, 1, 2}, 2);
  const std::string path = file_of(0, SealedKind::guard, 2);
  fs::copy(root_ + "/first/pool/" + fs::path(path).filename().string(), path,
           fs::copy_options::overwrite_existing);
  const LevelsReport report = verify(3);
  EXPECT_EQ(report.foreign, std::vector<std::string>{path});
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.kept.front().guards, (Ranks{1, 2}));
  EXPECT_EQ(report.kept.front().losses, 0U);
  fs::remove_all(pool(0));
  fs::rename(root_ + "/first/pool", pool(0));
  EXPECT_EQ(verify_levels({pool(0), pool(1)}, {}).status().code(), Code::foreign);
}

TEST_F(VerifiedJob, a_damaged_file_of_a_rank_is_named_and_other_levels_give_the_version) {
  run({0, 1, 2}, 3);
  const std::string path = pool(2) + "/" + rank_file_name(2);
  flip(path, 70);  // its header
  const LevelsReport report = verify(3);
  ASSERT_FALSE(report.kept.empty());
  EXPECT_EQ(report.pool_files, (Ranks{0, 1}));
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find(path), std::string::npos) << report.problems[0];
  expect_restart(report.now, RestartLevel::nodes, 3);
  run({0, 1, 2}, 0);  // makes it anew
  const std::string other = pool(1) + "/" + rank_file_name(1);
  const auto held = verify(3);
  ASSERT_TRUE(held.problems.empty()) << held.problems[0];
  expect_restart(held.now, RestartLevel::pool, 3);
  fs::resize_file(other, fs::file_size(other) / 2);
  EXPECT_FALSE(verify(3).problems.empty());
  expect_restart(verify(3).now, RestartLevel::nodes, 3);
}

TEST_F(VerifiedJob, what_ranks_left_on_other_nodes_is_not_what_a_restart_takes) {
  run({0, 1, 2}, 3);
  run({1, 2, 0}, 3);
  const LevelsReport report = verify(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(report.nodes[(rank + 1) % 3].ranks, Ranks{rank});
    EXPECT_EQ(report.nodes[rank].left_over, Ranks{rank});
  }
  EXPECT_TRUE(report.problems.empty());
  expect_restart(report.now, RestartLevel::pool, 6);
  expect_restart(report.nodes[1].without, RestartLevel::nodes, 6);
}

TEST_F(VerifiedJob, after_a_restore_the_version_that_was_restored_counts) {
  levels_ = "redundancy=off;every=100;patience=20s;drain=" + root_ + "/level";
  fs::create_directory(root_ + "/level");
  fs::permissions(root_ + "/level", fs::perms::owner_all);
  run({0, 1, 2}, 4);
  drains_ = {root_ + "/level"};
  expect_restart(verify(3).now, RestartLevel::pool, 4);
  levels_ = "redundancy=off";
  run({0, 1, 2}, 0, 3);  // says nothing to the drain
  const LevelsReport report = verify(3);
  EXPECT_EQ(report.drained.front().id.version, 4U);
  expect_restart(report.now, RestartLevel::pool, 3);
}

TEST_F(VerifiedJob, a_drained_version_bears_the_loss_of_all_nodes_unless_it_is_damaged) {
  levels_ += ";drain=" + root_ + "/level;drain_every=100";
  fs::create_directory(root_ + "/level");
  fs::permissions(root_ + "/level", fs::perms::owner_all);
  run({0, 1, 2}, 2);
  drains_ = {root_ + "/level"};
  expect_restart(verify(3).without_all, RestartLevel::drain, 2);
  std::string path;
  for (const auto& entry : fs::recursive_directory_iterator(drains_[0])) {
    if (entry.path().filename() == "node-00001") path = entry.path();
  }
  flip(path, node_align_bytes + sealed_payload_offset + 200);  // in an image
  LevelsReport report = verify(3);
  EXPECT_EQ(report.problems.size(), 1U);
  expect_restart(report.without_all, RestartLevel::none, 0);
  EXPECT_TRUE(verify(3, false).problems.empty());  // its data are not read
  fs::remove(path);
  report = verify(3, false);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("node-00001"), std::string::npos);
}

}  // namespace
}  // namespace perdure
