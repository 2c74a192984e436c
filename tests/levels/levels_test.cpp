// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs on several nodes whose ranks move, whose restores are cut short, or that are killed while
// their pool is made: what each restart finds.
// ctest: NAME levels_jobs_test TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "levels/census.hpp"
#include "levels/manifest.hpp"
#include "levels/sealed_format.hpp"
#include "levels/verify.hpp"
#include "levels_of_jobs.hpp"
#include "pmem/file_device.hpp"
#include "pool/box_note.hpp"
#include "pool/image.hpp"
#include "pool/pool_directory.hpp"
#include "pool/slots.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

TEST_F(LevelsOfJobs, ranks_that_move_and_move_back_find_the_newest_version) {
  ASSERT_EQ(run({.nodes = {0, 1}, .commits = 3, .mark = 1}), 0);
  ASSERT_EQ(run({.nodes = {1, 0}, .commits = 3, .mark = 2}), 0);
  EXPECT_EQ(found_->version, 3U);
  ASSERT_EQ(run({.nodes = {0, 1}}), 0);
  EXPECT_EQ(found_->version, 6U);
  EXPECT_EQ(found_->mark, 2U);
}

// Nothing is on another level. Rank 0 leaves an old file on node 0, and goes on from it while its
// new one is away.
TEST_F(LevelsOfJobs, a_node_that_comes_back_is_not_taken_for_what_was_made_without_it) {
  levels_ = "every=100;patience=20s";
  ASSERT_EQ(run({.nodes = {0, 1, 2}, .commits = 3, .mark = 1}), 0);
  ASSERT_EQ(run({.nodes = {1, 0, 2}, .commits = 2, .mark = 2}), 0);
  copy(1, "away");
  lose(1);
  for (const std::uint32_t number : {0U, 2U}) {
    for (const auto& entry : fs::directory_iterator(node(number) + "/pool")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("image-") || name.starts_with("guard-")) fs::remove(entry.path());
    }
  }
  ASSERT_EQ(run({.nodes = {0, 0, 2}, .commits = 2, .mark = 3}), 0);
  EXPECT_EQ(found_->version, 3U);
  const std::uint64_t newest = found_->committed;
  put_back("away", 1);
  ASSERT_EQ(run({.nodes = {1, 0, 2}}), 0);
  EXPECT_EQ(found_->version, newest);
  EXPECT_EQ(found_->mark, 3U);
}

TEST_F(LevelsOfJobs, a_file_that_is_one_version_old_does_not_hide_what_other_nodes_kept) {
  ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  copy(0, "old");
  ASSERT_EQ(run({.commits = 1, .mark = 2}), 0);
  put_back("old", 0);
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 4U);
  EXPECT_EQ(found_->mark, 2U);
}

// Rank 1 is ahead of what rank 0 had when it moved: others may have put into its arrays since,
// where they belong to that version.
TEST_F(LevelsOfJobs, a_version_that_some_rank_has_left_comes_from_images) {
  levels_ = "redundancy=partner;every=3;patience=20s";
  ASSERT_EQ(run({.nodes = {0, 1}, .commits = 3, .mark = 1}), 0);
  ASSERT_EQ(run({.nodes = {1, 0}}), 0);
  ASSERT_EQ(run({.nodes = {1, 0}, .commits = 1, .mark = 2}), 0);
  const auto generation_of_rank_1 = [&] {
    const auto census = census_of({node(0) + "/pool", node(2) + "/pool"}, Trust::own);
    const auto* const file = census.ok() ? census.value().files_in_use()[1] : nullptr;
    return file == nullptr ? 0 : file->generation;
  };
  lose(1);
  const std::uint64_t before = generation_of_rank_1();
  ASSERT_EQ(run({.nodes = {2, 0}}), 0);
  EXPECT_EQ(found_->version, 3U);
  EXPECT_EQ(found_->mark, 1U);
  EXPECT_GT(generation_of_rank_1(), before);
}

TEST_F(LevelsOfJobs, a_pool_that_is_older_than_what_was_drained_gives_way) {
  levels_ = "redundancy=off;every=1;drain=" + node(9) + ";patience=20s";
  fs::create_directories(node(9));
  fs::permissions(node(9), fs::perms::owner_all);
  ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  copy(0, "old-0");
  copy(1, "old-1");
  ASSERT_EQ(run({.commits = 2, .mark = 2, .take_last = true}), 0);
  put_back("old-0", 0);
  put_back("old-1", 1);
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 5U);
  EXPECT_EQ(found_->mark, 2U);
  // Unless somebody goes back to an older one.
  ASSERT_EQ(run({.restore = 5}), 0);
  ASSERT_EQ(run({.commits = 1, .mark = 3}), 0);
  ASSERT_EQ(run({.restore = 5}), 0);
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 5U);
}

// Version 4 is the newest that all ranks' files can still have, but that of rank 1 is being stored
// over.
TEST_F(LevelsOfJobs, a_version_that_the_files_no_longer_have_whole_comes_from_the_drain) {
  levels_ = "redundancy=off;every=4;drain=" + node(9) + ";patience=20s";
  std::uint64_t calls = 0;
  const auto begin = [&](std::uint64_t kill_at) {
    clear();
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
    ASSERT_EQ(run({.commits = 4, .mark = 1}), 0);
    copy(0, "old");
    (void)run({.commits = 4, .mark = 2, .kill_at = kill_at});
    calls = found_->calls;
  };
  begin(0);
  for (std::uint64_t kill_at = calls - 8; kill_at < calls; ++kill_at) {
    begin(kill_at);
    put_back("old", 0);
    ASSERT_EQ(run({}), 0) << kill_at;
    EXPECT_GE(found_->version, 4U);
    EXPECT_EQ(found_->mark, found_->version == 4 ? 1U : 2U);
  }
}

TEST_F(LevelsOfJobs, what_is_drained_says_where_arrays_lie_in_the_whole) {
  levels_ = "redundancy=off;every=1;drain=" + node(9) + ";patience=20s";
  fs::create_directories(node(9));
  fs::permissions(node(9), fs::perms::owner_all);
  ASSERT_EQ(run({.commits = 1, .mark = 1}), 0);
  const auto found = find_versions(place_of_pool(node(9), "pool"), std::nullopt);
  ASSERT_TRUE(found.ok() && found.value().manifests.size() == 1);
  const auto directory = Directory::open(node(0) + "/pool", Trust::own);
  ASSERT_TRUE(directory.ok());
  for (const std::uint32_t rank : {0U, 1U}) {
    auto image =
        LevelFile::open_or_make(directory.value(), {SealedKind::image, rank, 9}, Trust::own);
    ASSERT_TRUE(image.ok());
    ASSERT_TRUE(read_image(found.value().manifests[0], rank, image.value()).ok());
    const auto contents = parse_image(image.value().payload());
    ASSERT_TRUE(contents.ok());
    EXPECT_EQ(boxes_of(contents.value().catalogue).at({"u", 0}), (GlobalBox{{200}, {100 * rank}}));
  }
}

TEST_F(LevelsOfJobs, what_could_be_lost_is_told_by_files_that_are_whole) {
  levels_ = "redundancy=partner;every=3;drain=" + node(9) + ";patience=20s";
  fs::create_directories(node(9));
  fs::permissions(node(9), fs::perms::owner_all);
  ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  const std::vector<std::string> pools{node(0) + "/pool", node(1) + "/pool"};
  const auto verify = [&](const std::vector<std::string>& directories) {
    auto report = verify_levels(directories, {.drains = {node(9)}});
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.take() : LevelsReport{};
  };
  const std::vector<std::uint32_t> both{0, 1};
  LevelsReport report = verify(pools);
  ASSERT_EQ(report.kept.size(), 1U);
  EXPECT_EQ(report.kept[0].id.version, 3U);
  EXPECT_EQ(report.kept[0].images, both);
  EXPECT_EQ(report.kept[0].guards, both);
  EXPECT_EQ(report.kept[0].losses, 1U);
  EXPECT_EQ(report.pool_files, both);
  ASSERT_EQ(report.drained.size(), 1U);
  EXPECT_EQ(report.drained[0].problem, "");
  EXPECT_TRUE(report.problems.empty());

  report = verify({pools[0]});
  EXPECT_EQ(report.kept.at(0).images, (std::vector<std::uint32_t>{0}));
  EXPECT_TRUE(report.kept.at(0).restorable);
  EXPECT_EQ(report.kept.at(0).losses, 0U);

  const auto flip = [](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(sealed_payload_offset + 200);
    const char byte = static_cast<char>(file.peek() ^ 1);
    file.seekp(sealed_payload_offset + 200);
    file.put(byte);
  };
  for (const auto& entry : fs::recursive_directory_iterator(node(0))) {
    const std::string name = entry.path().filename();
    if (name.starts_with("image-") && entry.file_size() > sealed_payload_offset) flip(entry.path());
  }
  report = verify(pools);
  EXPECT_EQ(report.kept.at(0).images, (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(report.kept.at(0).restorable);
  EXPECT_EQ(report.kept.at(0).losses, 0U);
  EXPECT_EQ(report.problems.size(), 1U);
  for (const auto& entry : fs::recursive_directory_iterator(node(9))) {
    if (entry.path().filename() == "node-00001") fs::resize_file(entry.path(), 4096);
  }
  report = verify(pools);
  EXPECT_TRUE(report.drained.empty() || report.drained[0].problem != "");
  EXPECT_EQ(report.problems.size(), 2U);
  EXPECT_EQ(verify_levels({node(7)}, {}).status().code(), Code::not_found);
}

// The version before is still under way when the last one is committed.
TEST_F(LevelsOfJobs, the_last_version_of_a_job_is_drained_whatever_is_under_way) {
  levels_ = "redundancy=partner;every=1;drain=" + node(9) + ";patience=20s";
  for (std::uint64_t commits = 2; commits < 8; ++commits) {
    clear();
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
    ASSERT_EQ(run({.commits = commits, .mark = commits, .take_last = true}), 0);
    lose(0);
    lose(1);
    ASSERT_EQ(run({}), 0);
    EXPECT_EQ(found_->version, commits);
    EXPECT_EQ(found_->mark, commits);
  }
}

// Rank 0 does not learn in time whether the others have the last version, and the version before is
// still under way when that is taken.
TEST_F(LevelsOfJobs, a_rank_without_an_answer_takes_what_the_others_take_and_says_what_it_left) {
  levels_ = "redundancy=partner;every=1;drain=" + node(9) + ";patience=5s";
  const std::string log = node(8);
  const Cases cases = some_cases(2, 3);
  for (std::uint64_t commits = cases.first; commits < 5; commits += cases.step) {
    clear();
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
    std::uint64_t before = 0;
    const auto then = [&](const Levels& levels, std::uint64_t version) {
      const std::uint64_t taken = levels.counters().taken;
      return std::exchange(before, taken) < taken || version < commits;
    };
    Start start{.commits = commits, .mark = commits, .take_last = true, .then = then};
    start.hears_no_maxima = true;
    start.log = log;
    EXPECT_EQ(run(start), 0);
    std::ostringstream said;
    said << std::ifstream(log).rdbuf();
    EXPECT_NE(said.str().find("rank 0: version " + std::to_string(commits)), std::string::npos);
    EXPECT_NE(said.str().find("`perdure pool drain`"), std::string::npos) << said.str();
    lose(0);  // what was not agreed on is whole on the other node all the same
    ASSERT_EQ(run({}), 0);
    EXPECT_EQ(found_->version, commits);
    EXPECT_EQ(found_->mark, commits);
  }
}

// Nobody waits for what is left of it, so no later version may be exchanged: levels.K1.
TEST_F(LevelsOfJobs, a_version_that_does_not_come_to_other_nodes_in_time_is_the_last_to_go_there) {
  levels_ = "redundancy=partner;every=1;drain=" + node(9) + ";patience=1s";
  fs::create_directories(node(9));
  fs::permissions(node(9), fs::perms::owner_all);
  Start start{.commits = 3, .mark = 3, .take_last = true};
  start.hears_no_messages = true;
  start.log = node(8);
  EXPECT_EQ(run(start), 0);
  std::ostringstream said;
  said << std::ifstream(node(8)).rdbuf();
  EXPECT_NE(said.str().find("within 1000 ms"), std::string::npos) << said.str();
  EXPECT_NE(said.str().find("no redundancy between nodes until"), std::string::npos) << said.str();
  lose(0);
  lose(1);
  ASSERT_EQ(run({}), 0);  // it went to the drain
  EXPECT_EQ(found_->version, 3U);
  EXPECT_EQ(found_->mark, 3U);
}

TEST_F(LevelsOfJobs, what_was_waited_for_is_on_the_level_even_if_the_job_ends_there) {
  for (const bool drained : {false, true}) {
    levels_ =
        drained ? "redundancy=partner;every=1;drain=" + node(9) : "redundancy=partner;every=1";
    levels_ += ";patience=20s";
    for (std::uint64_t commits = 1; commits < 5; ++commits) {
      clear();
      fs::create_directories(node(9));
      fs::permissions(node(9), fs::perms::owner_all);
      ASSERT_EQ(run({.commits = commits, .mark = commits, .wait = true}), 0);
      lose(0);
      if (drained) lose(1);
      ASSERT_EQ(run({}), 0);
      EXPECT_EQ(found_->version, commits);
      EXPECT_EQ(found_->mark, commits);
    }
  }
}

// From then on there is a file in place of the drain's directory.
TEST_F(LevelsOfJobs, waiting_for_a_level_that_fails_is_an_error_and_the_version_stays_in_the_pool) {
  levels_ = "redundancy=off;every=1;drain=" + node(9) + ";patience=20s";
  fs::create_directories(node(9));
  fs::permissions(node(9), fs::perms::owner_all);
  const auto block = [this] {
    lose(9);
    std::ofstream(node(9)) << "no directory";
  };
  EXPECT_EQ(run({.commits = 1, .mark = 1, .wait = true, .opened = block}), refused_code);
  lose(9);
  levels_ = "redundancy=off";
  EXPECT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 1U);
}

// What is still copied when it is given up is copied from a version that the pool keeps: no later
// commit may store over it, and the file must not become one of a torn version.
TEST_F(LevelsOfJobs, what_is_given_up_is_not_copied_any_more) {
  constexpr std::uint64_t mebibyte_of_words = 1 << 17;
  const auto limit = [] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit bytes = {72 << 20, 72 << 20};  // rank 1 has no room for its image
    ::setrlimit(RLIMIT_FSIZE, &bytes);
  };
  constexpr std::uint64_t taken = 6;  // each slot has all words by then: a commit copies one block
  levels_ = "redundancy=partner;patience=20s;every=" + std::to_string(taken);
  const auto copied = [this](const Levels& levels, std::uint64_t version) {
    // Time for rank 1 to fail, which is little beside that of a copy.
    if (version == taken) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (version <= taken || levels.is_under_way()) return true;
    const auto directory = Directory::open(node(0) + "/pool");
    for (std::uint32_t slot = 0; slot < level_files_max; ++slot) {
      const auto image =
          LevelFile::open(directory.value(), {SealedKind::image, 0, slot}, Trust::own);
      if (image.ok() && image.value().whole()) return image.value().verify().ok();
    }
    return false;
  };
  EXPECT_EQ(run({.commits = taken + 20,
                 .mark = 1,
                 .words = {64 * mebibyte_of_words, 80 * mebibyte_of_words},
                 .mode = ArrayMode::log,  // a commit takes less time than a copy
                 .opened = limit,
                 .then = copied}),
            0);
}

TEST_F(LevelsOfJobs, a_version_that_a_cut_restore_gave_up_is_not_brought_back) {
  levels_ = "redundancy=partner;every=3;patience=20s";
  const auto begin = [&] {
    clear();
    ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  };
  begin();
  ASSERT_EQ(run({.restore = 2}), 0);
  const std::uint64_t calls = found_->calls;
  std::uint64_t restored = 0;
  for (const std::uint64_t i : one_of_each_part(calls, 2 * calls + 1, 6)) {
    const std::uint64_t kill_at = i / 2;
    const auto late = static_cast<std::int64_t>(i % 2);
    begin();
    (void)run({.restore = 2, .kill_at = kill_at, .late = late});
    ASSERT_EQ(run({.commits = 1, .mark = 2}), 0) << kill_at;
    const std::uint64_t line = found_->version;  // of the restart
    ASSERT_TRUE(line == 2 || line == 3) << kill_at;
    lose(late == 0 ? 1 : 0);
    const int code = run({});
    if (line == 3) continue;  // the restore had not happened
    ++restored;
    const bool given_up = code == 0 && found_->version == 3 && found_->mark == 1;
    EXPECT_FALSE(given_up) << "killed at call " << kill_at;
  }
  EXPECT_GT(restored, 0U);
}

TEST_F(LevelsOfJobs, a_version_that_a_cut_restore_gave_up_does_not_come_from_the_drain) {
  levels_ = "redundancy=off;every=3;drain=" + node(9) + ";patience=20s";
  const auto begin = [&] {
    clear();
    fs::create_directories(node(9));
    fs::permissions(node(9), fs::perms::owner_all);
    ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  };
  begin();
  ASSERT_EQ(run({.restore = 2}), 0);
  const std::uint64_t calls = found_->calls;
  std::uint64_t restored = 0;
  for (const std::uint64_t kill_at : one_of_each_part(calls / 2, calls, 6)) {
    begin();
    (void)run({.restore = 2, .kill_at = kill_at, .late = 0});
    ASSERT_EQ(run({.commits = 1, .mark = 2}), 0) << kill_at;
    if (found_->version == 3) continue;  // the restore had not happened
    ++restored;
    lose(0);
    lose(1);
    ASSERT_EQ(run({}), 0);
    EXPECT_EQ(found_->version, 0U) << "killed at call " << kill_at;
  }
  EXPECT_GT(restored, 0U);
}

TEST_F(LevelsOfJobs, a_restore_that_is_cut_leaves_named_files_as_some_version_has_them) {
  levels_ = "redundancy=off";
  const auto begin = [&] {
    clear();
    ASSERT_EQ(run({.commits = 3, .mark = 1, .lines = true}), 0);
  };
  begin();
  ASSERT_EQ(run({.restore = 2, .lines = true}), 0);
  const std::uint64_t calls = found_->calls;
  std::uint64_t restored = 0;
  for (const std::uint64_t i : one_of_each_part(2, 2 * calls + 1, 16)) {  // either rank is late
    const std::uint64_t kill_at = i / 2;
    begin();
    (void)run({.restore = 2, .kill_at = kill_at, .late = i % 2 == 0 ? 0 : 1, .lines = true});
    EXPECT_EQ(run({.lines = true}), 0) << "killed at call " << kill_at;
    if (found_->version == 2) ++restored;
  }
  EXPECT_GT(restored, 0U);
}

TEST_F(LevelsOfJobs, a_restore_without_levels_is_not_undone_by_them) {
  levels_ = "redundancy=partner;every=3;patience=20s";
  ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  levels_ = "redundancy=off";
  ASSERT_EQ(run({.restore = 2}), 0);
  levels_ = "redundancy=partner;every=3;patience=20s";
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 2U);
  lose(0);
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 2U);
}

TEST_F(LevelsOfJobs, a_pool_of_another_job_that_lost_its_record_is_not_stored_over) {
  ASSERT_EQ(run({.commits = 2, .mark = 1}), 0);
  ASSERT_EQ(run({.nodes = {3, 2}, .commits = 1, .mark = 2}), 0);
  fs::rename(node(2) + "/pool/job", node(2) + "/job");
  ASSERT_EQ(run({.nodes = {0, 2}}), refused_code);
  ASSERT_EQ(run({.nodes = {0, 1}}), 0);
  fs::rename(node(2) + "/job", node(2) + "/pool/job");
  ASSERT_EQ(run({.nodes = {3, 2}}), 0);
  EXPECT_EQ(found_->mark, 2U);
}

TEST_F(LevelsOfJobs, a_restored_version_can_be_lost_on_a_node_at_once) {
  levels_ = "redundancy=partner;every=3;patience=20s";
  ASSERT_EQ(run({.commits = 3, .mark = 1}), 0);
  ASSERT_EQ(run({.restore = 2}), 0);
  lose(0);
  ASSERT_EQ(run({}), 0);
  EXPECT_EQ(found_->version, 2U);
}

TEST_F(LevelsOfJobs, a_job_that_was_killed_while_it_made_its_pool_can_be_started_again) {
  ASSERT_EQ(run({.commits = 1, .mark = 1}), 0);
  const std::uint64_t calls = found_->calls;
  for (const std::uint64_t kill_at : one_of_each_part(1, calls, 16)) {
    clear();
    const auto late = static_cast<std::int64_t>(kill_at % 2);
    ASSERT_EQ(run({.commits = 1, .mark = 1, .kill_at = kill_at, .late = late}), killed_code);
    EXPECT_EQ(run({.commits = 1, .mark = 1}), 0) << kill_at;
  }
}

// Each restart protects the version anew, is killed before all ranks know that it has, and leaves
// another image of it. What it was rebuilt from must stay, too.
TEST_F(LevelsOfJobs, restarts_that_are_killed_again_and_again_leave_room_for_newer_versions) {
  ASSERT_EQ(run({.commits = 2, .mark = 1}), 0);
  lose(0);
  ASSERT_EQ(run({}), 0);
  const std::uint64_t calls = found_->calls;
  for (const std::uint64_t back : one_of_each_part(1, calls / 2 - 1, 4)) {
    lose(0);
    for (int round = 0; round < 4; ++round) (void)run({.kill_at = calls - back, .late = round % 2});
    lose(0);
    ASSERT_EQ(run({.commits = 1, .mark = 2 + back}), 0) << back;
    lose(1);
    ASSERT_EQ(run({}), 0) << back;
    ASSERT_EQ(found_->mark, 2 + back) << back;
  }
}

// Another run has it, which a start on other nodes does not meet otherwise.
TEST_F(LevelsOfJobs, a_file_that_a_living_process_uses_is_neither_moved_nor_replaced) {
  ASSERT_EQ(run({.nodes = {0, 1}, .commits = 2, .mark = 1}), 0);
  const std::string path = node(0) + "/pool/rank-00000";
  auto used = open_file(path, FileAccess::read, Trust::own);
  ASSERT_TRUE(used.ok() && try_lock_file(used.value().fd(), FileLock::alone, path).value());
  EXPECT_EQ(run({.nodes = {1, 0}, .commits = 1, .mark = 2}), refused_code);
  EXPECT_FALSE(fs::exists(node(1) + "/pool/rank-00000"));
  copy(1, "away");
  lose(1);
  EXPECT_EQ(run({.nodes = {0, 2}, .commits = 1, .mark = 2}), refused_code);
  put_back("away", 1);
  struct stat opened{};
  struct stat named{};
  ASSERT_TRUE(::fstat(used.value().fd(), &opened) == 0 && ::stat(path.c_str(), &named) == 0);
  EXPECT_EQ(opened.st_ino, named.st_ino);
  {
    const FileHandle over = used.take();
  }
  ASSERT_EQ(run({.nodes = {1, 0}}), 0);
  EXPECT_EQ(found_->version, 2U);
  EXPECT_EQ(found_->mark, 1U);
}

// Its stripes would have no column of data.
TEST_F(LevelsOfJobs, a_failure_group_that_is_too_small_for_its_scheme_is_refused) {
  fs::create_directories(node(9));
  const std::string groups = node(9) + "/groups";
  std::ofstream(groups) << "0 1\n";
  levels_ = "redundancy=rs:1+2;every=1;patience=20s;groups=" + groups;
  EXPECT_EQ(run({.commits = 2}), refused_code);
}

// Each rank would give its image to others than those that expect it.
TEST_F(LevelsOfJobs, failure_groups_that_differ_between_nodes_are_refused_on_all) {
  levels_ = "redundancy=partner;every=1;patience=20s;groups=@/groups";
  const std::vector<std::uint32_t> nodes = {0, 1, 2, 3};
  for (const std::uint32_t number : nodes) {
    fs::create_directories(node(number));
    std::ofstream(node(number) + "/groups") << "0 1\n2 3\n";
  }
  ASSERT_EQ(run({.nodes = nodes, .commits = 2, .mark = 1}), 0);
  std::ofstream(node(3) + "/groups") << "0 2\n1 3\n";
  EXPECT_EQ(run({.nodes = nodes, .commits = 2}), refused_code);
  fs::remove(node(3) + "/groups");
  EXPECT_EQ(run({.nodes = nodes, .commits = 2}), refused_code);
  std::ofstream(node(3) + "/groups") << "2 3\n0 1\n";
  EXPECT_EQ(run({.nodes = nodes, .commits = 2}), refused_code);
  std::ofstream(node(3) + "/groups") << "0 1\n2 3\n";
  ASSERT_EQ(run({.nodes = nodes}), 0);
  EXPECT_EQ(found_->mark, 1U);
}

}  // namespace
}  // namespace perdure
