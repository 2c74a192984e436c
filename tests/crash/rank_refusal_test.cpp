// SPDX-License-Identifier: BSD-3-Clause
//
// Another number of ranks: what is refused, by which name, and that the old pool stays as it was.
// ctest: NAME crash_rank_change_test
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>

#include "base/testing/thread_group.hpp"
#include "pool/inspect.hpp"
#include "pool/old_ranks.hpp"
#include "pool/pool_directory.hpp"
#include "pool/rank_files.hpp"
#include "rank_job.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

using Body = std::function<Status(Pool& pool, Group& group)>;

class AnotherNumber : public testing::Test {
 protected:
  // The error of the lowest rank that has one of its own.
  Status job(std::uint32_t ranks, const Body& body) {
    std::vector<Status> all(ranks);
    ThreadJob threads(ranks);
    threads.run([&](ThreadGroup& group) {
      OpenOptions options = options_;
      auto pool = open_pool(pool_, group, options);
      Status& mine = all[group.rank()];
      mine = pool.ok() ? body(*pool.value(), group) : pool.status();
    });
    Status found;
    for (const Status& each : all) {
      if (!each.ok() && (found.ok() || found.code() == Code::peer_failed)) found = each;
    }
    return found;
  }

  static Result<VersionedArray*> open(Pool& pool, const std::string& name, std::uint64_t elements,
                                      RankRule rule) {
    ArrayOptions options;
    options.ranks = rule;
    return pool.open_array(name, {ArrayType::int64, ArrayMode::copy, true, {elements}}, options);
  }
  static std::int64_t* words(VersionedArray* array) {
    return reinterpret_cast<std::int64_t*>(array->working());
  }

  // Arrays u and v of 6 elements, which are their numbers, by `rank` or not; version 1.
  void make(std::uint32_t ranks, bool by_rank, const Body& more = nullptr) {
    const Status made = job(ranks, [&](Pool& pool, Group& group) -> Status {
      PERDURE_TRY_ASSIGN(auto* u, open(pool, "u", 6, RankRule::none));
      PERDURE_TRY_ASSIGN(auto* v, open(pool, "v", 6, RankRule::none));
      if (more) PERDURE_TRY(more(pool, group));
      PERDURE_TRY(pool.restart().status());
      for (std::int64_t i = 0; i < 6; ++i) {
        words(u)[i] = words(v)[i] = i + (by_rank ? 6 * static_cast<std::int64_t>(group.rank()) : 0);
      }
      return pool.commit().status();
    });
    ASSERT_TRUE(made.ok()) << made.message();
  }

  void expect_old_pool(std::uint32_t ranks, std::uint64_t version = 1) {
    const auto report = inspect_pool(pool_, {.verify_data = true});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report.value().job.ranks, ranks);
    EXPECT_EQ(report.value().version, version);
    EXPECT_EQ(report.value().worst(), Severity::fine);
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(pool_)) ++files;
    EXPECT_EQ(files, ranks + 1) << "remains";
  }
  static void expect_says(const Status& status, Code code, const std::string& what) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  }
  static Body restart_with(RankRule u, RankRule v, std::uint64_t elements = 6) {
    return [=](Pool& pool, Group&) -> Status {
      PERDURE_TRY(open(pool, "u", elements, u).status());
      PERDURE_TRY(open(pool, "v", elements, v).status());
      return pool.restart().status();
    };
  }

  AnotherNumber() {
    options_.job_name = "test";
    options_.any_ranks = true;
    options_.lock_wait_ms = 50;
  }
  perdure_test::TemporaryDirectory directory_;
  std::string pool_ = directory_ / "pool";
  OpenOptions options_;
};

TEST_F(AnotherNumber, without_the_flag_is_refused) {
  make(3, false);
  options_.any_ranks = false;
  expect_says(job(2, restart_with(RankRule::same, RankRule::same)), Code::rank_mismatch,
              "made by 3 ranks, this job has 2; start 3 ranks, or open it with PERDURE_ANY_RANKS");
  expect_old_pool(3);
}

TEST_F(AnotherNumber, names_the_arrays_of_which_nothing_is_said) {
  make(3, false);
  expect_says(job(2, restart_with(RankRule::none, RankRule::none)), Code::rank_mismatch,
              "nothing is said of how to divide arrays 'u', 'v': say PERDURE_ROWS");
  expect_says(job(2, restart_with(RankRule::same, RankRule::none)), Code::rank_mismatch,
              "divide array 'v'");
  expect_old_pool(3);
}

TEST_F(AnotherNumber, names_the_arrays_that_no_rank_opens) {
  make(2, false);
  expect_says(job(3,
                  [](Pool& pool, Group&) -> Status {
                    PERDURE_TRY(open(pool, "u", 6, RankRule::same).status());
                    return pool.restart().status();
                  }),
              Code::rank_mismatch, "no rank has opened array 'v'");
  expect_old_pool(2);
}

TEST_F(AnotherNumber, what_is_said_to_be_the_same_is_compared) {
  make(3, true);
  expect_says(job(2, restart_with(RankRule::by_hand, RankRule::same)), Code::rank_mismatch,
              "array 'v' is not the same on all old ranks: 0 and ");
  expect_old_pool(3);
}

TEST_F(AnotherNumber, ranks_that_say_different_things_are_told) {
  make(2, false);
  expect_says(job(3,
                  [](Pool& pool, Group& group) {
                    const RankRule rule = group.rank() == 1 ? RankRule::rows : RankRule::same;
                    return restart_with(RankRule::same, rule)(pool, group);
                  }),
              Code::rank_mismatch, "different things of array 'v': rows and same");
  expect_old_pool(2);
}

TEST_F(AnotherNumber, rows_must_be_asked_for_all) {
  make(2, true);
  expect_says(job(3, restart_with(RankRule::rows, RankRule::by_hand, 5)), Code::shape_mismatch,
              "ask for 15 rows of array 'u' in all, and the pool has 12");
  const Status even = job(3, restart_with(RankRule::rows, RankRule::by_hand, 4));
  EXPECT_TRUE(even.ok()) << even.message();
  expect_old_pool(2);
}

TEST_F(AnotherNumber, scalars_that_differ_are_refused_unless_they_are_bound_afterwards) {
  std::vector<std::uint64_t> values(8);
  make(2, false, [&](Pool& pool, Group& group) {
    values[group.rank()] = 10 + group.rank();
    return pool.bind_scalar("s", &values[group.rank()], 8, ScalarType::uint64);
  });
  const auto take = [&](bool before) {
    return job(3, [&, before](Pool& pool, Group& group) -> Status {
      std::uint64_t& value = values[group.rank()];
      value = 99;
      if (before) PERDURE_TRY(pool.bind_scalar("s", &value, 8, ScalarType::uint64));
      PERDURE_TRY(restart_with(RankRule::same, RankRule::same)(pool, group));
      PERDURE_TRY(pool.bind_scalar("s", &value, 8, ScalarType::uint64));
      std::uint64_t its = 0;
      PERDURE_TRY(pool.read_old("s", 1, 0, 1, &its));
      EXPECT_EQ(value, 99U);
      EXPECT_EQ(its, 11U);
      return Status::success();
    });
  };
  expect_says(take(true), Code::rank_mismatch,
              "scalar 's' is not the same on all old ranks: 0 and 1 differ");
  const Status taken = take(false);
  EXPECT_TRUE(taken.ok()) << taken.message();
  expect_old_pool(2);
}

TEST_F(AnotherNumber, files_are_cut_by_whichever_rank_names_them) {
  const auto log = [&](std::uint32_t rank) { return directory_ / ("log." + std::to_string(rank)); };
  const auto write = [&](std::uint32_t rank, const char* text) {
    std::ofstream(log(rank), std::ios::app) << text;
  };
  const Status made = job(2, [&](Pool& pool, Group& group) -> Status {
    PERDURE_TRY(pool.name_file(log(group.rank()), nullptr));
    PERDURE_TRY(restart_with(RankRule::none, RankRule::none)(pool, group));
    write(group.rank(), "kept\n");
    return pool.commit().status();
  });
  ASSERT_TRUE(made.ok()) << made.message();
  for (std::uint32_t rank = 0; rank < 2; ++rank) write(rank, "not\n");
  const auto named_by = [&](std::uint32_t first, std::uint32_t second) {
    return job(3, [&, first, second](Pool& pool, Group& group) -> Status {
      if (group.rank() == first) PERDURE_TRY(pool.name_file(log(0), nullptr));
      if (group.rank() == second) PERDURE_TRY(pool.name_file(log(1), nullptr));
      return restart_with(RankRule::same, RankRule::same)(pool, group);
    });
  };
  expect_says(named_by(2, 9), Code::rank_mismatch, "log.1', which no rank names now");
  EXPECT_EQ(perdure_test::read_file(log(0)), "kept\nnot\n");
  const Status cut = named_by(2, 0);
  EXPECT_TRUE(cut.ok()) << cut.message();
  EXPECT_EQ(perdure_test::read_file(log(0)), "kept\n");
  EXPECT_EQ(perdure_test::read_file(log(1)), "kept\n");
}

// A run of other ranks is killed, or has its first version: who names the file next is another
// rank, and what a version knows nothing of goes all the same.
TEST_F(AnotherNumber, files_are_as_they_were_named_first_by_whichever_rank) {
  const std::string log = directory_ / "log";
  options_.keep = 2;
  const auto write = [&] { std::ofstream(log, std::ios::app) << "line\n"; };
  const auto run = [&](std::uint32_t ranks, std::uint32_t names, const Body& then) {
    const Status done = job(ranks, [&](Pool& pool, Group& group) -> Status {
      PERDURE_TRY(restart_with(RankRule::same, RankRule::same)(pool, group));
      if (group.rank() == names) PERDURE_TRY(pool.name_file(log, nullptr));
      PERDURE_TRY(group.all_max({}));
      EXPECT_FALSE(std::filesystem::exists(log) && std::filesystem::file_size(log) != 0);
      PERDURE_TRY(group.all_max({}));
      if (group.rank() == names) write();
      return then(pool, group);
    });
    ASSERT_TRUE(done.ok()) << done.message();
  };
  const Body is_killed = [](Pool&, Group&) { return Status::success(); };
  make(2, false);
  run(3, 2, is_killed);
  run(2, 0, is_killed);
  run(3, 1, is_killed);
  run(1, 0, [](Pool& pool, Group&) -> Status {
    PERDURE_TRY(pool.commit().status());
    return pool.restore(1);
  });
  EXPECT_EQ(perdure_test::read_file(log), "");
}

// Rank r of `ranks` has `width` cells of 12, from r * 12 / ranks on.
Status restart_boxes(Pool& pool, Group& group, std::uint64_t width, std::int64_t*& cells) {
  ArrayOptions options;
  PERDURE_TRY_ASSIGN(
      auto* u, pool.open_array("u", {ArrayType::int64, ArrayMode::copy, true, {width}}, options));
  PERDURE_TRY(pool.set_box(*u, {{12}, {group.rank() * 12U / group.ranks()}}));
  PERDURE_TRY(pool.restart().status());
  cells = reinterpret_cast<std::int64_t*>(u->working());
  return Status::success();
}

TEST_F(AnotherNumber, cells_that_nobody_had_are_zero_and_those_that_nobody_has_an_error) {
  const Status made = job(3, [](Pool& pool, Group& group) -> Status {
    std::int64_t* cells = nullptr;
    PERDURE_TRY(restart_boxes(pool, group, 3, cells));  // cells 3, 7 and 11 are nobody's
    for (int i = 0; i < 3; ++i) cells[i] = 4 * static_cast<int>(group.rank()) + i + 1;
    return pool.commit().status();
  });
  ASSERT_TRUE(made.ok()) << made.message();
  const auto with_width = [&](std::uint64_t width) {
    return job(2, [width](Pool& pool, Group& group) -> Status {
      std::int64_t* cells = nullptr;
      PERDURE_TRY(restart_boxes(pool, group, width, cells));
      for (std::uint64_t i = 0; i < width; ++i) {
        const std::uint64_t cell = 6 * group.rank() + i;
        EXPECT_EQ(cells[i], cell % 4 == 3 ? 0 : static_cast<std::int64_t>(cell) + 1);
      }
      return Status::success();
    });
  };
  expect_says(with_width(4), Code::shape_mismatch, " had of array 'u' are in no rank's box now");
  testing::internal::CaptureStderr();
  const Status taken = with_width(6);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(taken.ok()) << taken.message();
  EXPECT_NE(said.find("1 cells of array 'u' of rank 0 were in no old rank's box"),
            std::string::npos)
      << said;
}

TEST_F(AnotherNumber, damage_of_an_old_file_is_named_and_nothing_else_happens) {
  make(2, false);
  const auto dumped = dump_array(pool_, 1, "u").take();
  std::string bytes = perdure_test::read_file(dumped.file);
  bytes[dumped.file_offset + 8] ^= 1;
  perdure_test::write_file(dumped.file, bytes);
  expect_says(job(3, restart_with(RankRule::same, RankRule::by_hand)), Code::damaged,
              "rank-00001: array 'u': bytes 0 to 48");
  const Status by_hand = job(3, restart_with(RankRule::by_hand, RankRule::same));
  EXPECT_TRUE(by_hand.ok()) << by_hand.message();
}

TEST_F(AnotherNumber, a_second_job_waits_for_the_first_one_in_vain) {
  JobRun run{pool_, 3, 5};
  run_job(run, 2);
  run.ranks = 2;
  run.before_commit = [&] {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 4U}) {
      JobRun second{pool_, ranks, 6};
      const JobResult result = run_job(second, 1);
      EXPECT_EQ(result.opened.code(), Code::busy) << ranks << ": " << result.opened.message();
    }
  };
  const JobResult first = run_job(run, 1);
  EXPECT_TRUE(first.opened.ok()) << first.opened.message();
  EXPECT_TRUE(first.wrong.empty()) << first.wrong.front();
  EXPECT_EQ(first.newest, 3U);
}

// A group of one that does something when its second exchange begins.
class OccupiedGroup : public SoloGroup {
 public:
  explicit OccupiedGroup(std::function<void()> what) : what_(std::move(what)) {}
  Status all_max(std::span<std::uint64_t>) override {
    if (++calls_ == 2) what_();
    return Status::success();
  }

 private:
  std::function<void()> what_;
  int calls_ = 0;
};

// A job that was killed when it had exchanged the record: the old files have their names, too.
class KilledBeforeNames : public AnotherNumber {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    make(3, false);
    fs::copy(pool_, directory_ / "old");
    const Status changed = job(2, go_on());
    ASSERT_TRUE(changed.ok()) << changed.message();
    for (const std::uint32_t rank : {0U, 1U}) {
      fs::rename(rank_file_path(pool_, rank), pool_ + "/" + next_rank_file_name(rank));
    }
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      fs::copy(rank_file_path(directory_ / "old", rank), pool_);
    }
  }
  static Body go_on() {
    return [](Pool& pool, Group& group) -> Status {
      PERDURE_TRY(restart_with(RankRule::same, RankRule::same)(pool, group));
      return pool.commit().status();
    };
  }
  // As a job that has settled the names before the record was exchanged.
  Status look(Group& group) {
    const JobRecord found = read_job_record(Directory::open(pool_).take()).value();
    return OldRanks::open(pool_, found, group, options_).status();
  }
  void expect_new_pool() {
    const Status again = job(1, go_on());
    EXPECT_TRUE(again.ok()) << again.message();
    expect_old_pool(1, 3);
  }
};

TEST_F(KilledBeforeNames, leaves_files_that_are_not_taken_for_remains) {
  SoloGroup alone;
  expect_says(look(alone), Code::busy, "try again");
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_TRUE(std::filesystem::exists(pool_ + "/" + next_rank_file_name(rank)));
  }
  expect_new_pool();
}

TEST_F(KilledBeforeNames, leaves_files_whose_locks_do_not_count_when_others_take_their_names) {
  OccupiedGroup beside([&] {  // rank 0's is locked
    const Status settled = settle_names(pool_, 0, 1, 0, Trust::own);
    EXPECT_TRUE(settled.ok()) << settled.message();
  });
  expect_says(look(beside), Code::busy, "try again");
  expect_new_pool();
}

TEST_F(AnotherNumber, before_the_first_commit_there_is_one_version_and_no_way_to_others) {
  options_.keep = 3;
  make(2, false);
  const Status status = job(3, [](Pool& pool, Group& group) -> Status {
    EXPECT_EQ(pool.versions().size(), 1U);
    PERDURE_TRY(restart_with(RankRule::same, RankRule::by_hand)(pool, group));
    EXPECT_EQ(pool.versions().size(), 1U);
    EXPECT_EQ(pool.restore(1).code(), Code::wrong_state);
    EXPECT_EQ(pool.delete_version(1).code(), Code::wrong_state);
    EXPECT_EQ(pool.commit().value(), 2U);
    // Version 1 lacks what was read by hand.
    const auto versions = pool.versions();
    EXPECT_EQ(versions.size(), 1U);
    EXPECT_EQ(versions.front().version, 2U);
    std::int64_t word = 0;
    EXPECT_EQ(pool.read_old("v", 0, 0, 1, &word).code(), Code::wrong_state);
    EXPECT_EQ(pool.commit().value(), 3U);
    EXPECT_EQ(pool.versions().size(), 2U);
    return pool.restore(2);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  expect_old_pool(3, 2);
}

TEST_F(AnotherNumber, what_no_rule_can_divide_is_refused_by_name) {
  make(2, false);
  perdure_test::write_file(pool_ + "/0123.part", "x");
  options_.of_cached_file = [](const std::string& name) { return name.ends_with(".part"); };
  expect_says(job(3, restart_with(RankRule::same, RankRule::same)), Code::rank_mismatch,
              "a cached file is committed with it, whose part is 0123.part");
  options_.of_cached_file = nullptr;
  const Status window = job(2, [](Pool& pool, Group&) -> Status {
    ArrayOptions part;
    part.part = 1;
    PERDURE_TRY(
        pool.open_array("w", {ArrayType::byte, ArrayMode::twin, false, {8}}, part).status());
    PERDURE_TRY(open(pool, "u", 6, RankRule::none).status());
    PERDURE_TRY(open(pool, "v", 6, RankRule::none).status());
    PERDURE_TRY(pool.restart().status());
    return pool.commit().status();
  });
  ASSERT_TRUE(window.ok()) << window.message();
  expect_says(job(3, restart_with(RankRule::same, RankRule::same)), Code::rank_mismatch,
              "has regions that are attached to the window 'w'");
}

// As windows are.
Status open_late(Pool& pool, const std::string& name, RankRule rule) {
  ArrayOptions options;
  options.ranks = rule;
  return pool.open_array_on_all(name, {ArrayType::int64, ArrayMode::copy, true, {6}}, options)
      .status();
}

TEST_F(AnotherNumber, a_commit_that_would_lose_what_was_not_opened_after_the_restart_is_refused) {
  for (const std::uint32_t keep : {1U, 3U}) {
    options_.keep = keep;
    pool_ = directory_ / ("pool" + std::to_string(keep));
    make(2, false);
    const Status lost = job(3, [](Pool& pool, Group&) -> Status {
      pool.take_arrays_late();
      PERDURE_TRY(pool.restart().status());
      PERDURE_TRY(open_late(pool, "u", RankRule::same));
      return pool.commit().status();
    });
    expect_says(lost, Code::rank_mismatch, "the first commit would lose 'v', which they had");
    const Status silent = job(3, [](Pool& pool, Group&) -> Status {
      pool.take_arrays_late();
      PERDURE_TRY(pool.restart().status());
      return open_late(pool, "u", RankRule::none);
    });
    expect_says(silent, Code::rank_mismatch,
                "nothing is said of how to divide window 'u': say perdure_ranks=rows");
    expect_old_pool(2);
    const Status kept = job(3, [](Pool& pool, Group&) -> Status {
      pool.take_arrays_late();
      PERDURE_TRY(pool.restart().status());
      PERDURE_TRY(open_late(pool, "u", RankRule::same));
      EXPECT_EQ(pool.commit().status().code(), Code::rank_mismatch);
      PERDURE_TRY(open_late(pool, "v", RankRule::by_hand));
      EXPECT_EQ(pool.commit().value(), 2U);
      EXPECT_EQ(pool.versions().size(), 1U);
      return Status::success();
    });
    EXPECT_TRUE(kept.ok()) << kept.message();
    expect_old_pool(3, 2);
  }
}

TEST_F(AnotherNumber, what_is_closed_before_the_first_commit_would_be_lost) {
  make(2, false);
  const Status lost = job(3, [](Pool& pool, Group&) -> Status {
    pool.take_arrays_late();
    PERDURE_TRY(pool.restart().status());
    PERDURE_TRY(open_late(pool, "u", RankRule::same));
    ArrayOptions options;
    options.ranks = RankRule::same;
    PERDURE_TRY_ASSIGN(auto* v, pool.open_array_on_all(
                                    "v", {ArrayType::int64, ArrayMode::copy, true, {6}}, options));
    PERDURE_TRY(pool.close_array(v, false));
    EXPECT_EQ(pool.commit().status().code(), Code::rank_mismatch);
    PERDURE_TRY(open_late(pool, "v", RankRule::same));
    return pool.commit().status();
  });
  EXPECT_TRUE(lost.ok()) << lost.message();
  expect_old_pool(3, 2);
}

TEST_F(AnotherNumber, a_scalar_that_differs_can_be_bound_after_the_first_commit_alone) {
  std::vector<std::uint64_t> values(8);
  make(2, false, [&](Pool& pool, Group& group) {
    values[group.rank()] = 10 + group.rank();
    return pool.bind_scalar("s", &values[group.rank()], 8, ScalarType::uint64);
  });
  const Status taken = job(3, [&](Pool& pool, Group& group) -> Status {
    pool.take_arrays_late();
    PERDURE_TRY(pool.restart().status());
    std::uint64_t& value = values[group.rank()];
    expect_says(pool.bind_scalar("s", &value, 8, ScalarType::uint64), Code::rank_mismatch,
                "0 and 1 differ; bind it after the first commit, and read the old ones");
    PERDURE_TRY(open_late(pool, "u", RankRule::same));
    PERDURE_TRY(open_late(pool, "v", RankRule::same));
    PERDURE_TRY(pool.commit().status());
    return pool.bind_scalar("s", &value, 8, ScalarType::uint64);
  });
  EXPECT_TRUE(taken.ok()) << taken.message();
}

// The version that lacks it is deleted by all ranks, whoever had it open.
TEST_F(AnotherNumber, one_rank_alone_may_read_an_array_by_hand) {
  options_.keep = 3;
  make(2, false);
  const Status taken = job(3, [](Pool& pool, Group& group) -> Status {
    PERDURE_TRY(open(pool, "u", 6, RankRule::same).status());
    if (group.rank() == 1) PERDURE_TRY(open(pool, "v", 6, RankRule::by_hand).status());
    PERDURE_TRY(pool.restart().status());
    PERDURE_TRY(pool.commit().status());
    EXPECT_EQ(pool.versions().size(), 1U);
    return pool.commit().status();
  });
  EXPECT_TRUE(taken.ok()) << taken.message();
  expect_old_pool(3, 3);
}

// As one of tier stream is stored.
TEST_F(AnotherNumber, an_object_that_no_rank_names_is_refused_and_may_be_named_as_an_array) {
  ArrayOptions spare;
  spare.spare_copy = true;
  make(2, false, [&](Pool& pool, Group&) {
    return pool.open_array("o", {ArrayType::byte, ArrayMode::twin, false, {4098}}, spare).status();
  });
  expect_says(job(3, restart_with(RankRule::same, RankRule::same)), Code::rank_mismatch,
              "no rank has opened array 'o'");
  expect_old_pool(2);
  const Status divided = job(3, [](Pool& pool, Group& group) -> Status {
    ArrayOptions rows;
    rows.ranks = RankRule::rows;
    PERDURE_TRY(
        pool.open_array("o", {ArrayType::byte, ArrayMode::copy, true, {2732}}, rows).status());
    PERDURE_TRY(restart_with(RankRule::same, RankRule::same)(pool, group));
    return pool.commit().status();
  });
  EXPECT_TRUE(divided.ok()) << divided.message();
  expect_old_pool(3, 2);
}

}  // namespace
}  // namespace perdure
