// SPDX-License-Identifier: BSD-3-Clause
//
// Collective calls that do not belong together: every pair of them, on 2 and 4 ranks that are
// threads. An error on all ranks that names both calls; no version is made, or lost, by it; and
// what all call next is done.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/agreement.hpp"
#include "base/testing/thread_group.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/box_note.hpp"
#include "pool/pool.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr Geometry geometry{4096, 64, 4096, 5};  // keeps 4 versions
constexpr std::uint64_t committed = 3;
constexpr std::uint64_t words = 50;

// A rank's pool, on a device that a test can look at.
struct Rank {
  std::unique_ptr<Pool> pool;
  CrashDevice* medium = nullptr;
  std::vector<std::uint64_t> buffer = std::vector<std::uint64_t>(words);
};

Status open(Rank& rank, Group& group, std::span<const std::byte> image = {}) {
  auto device = std::make_unique<CrashDevice>(1 << 20, 64);
  rank.medium = device.get();
  if (image.empty()) {
    auto made = format_region(*device, {{{1, 2}}, "test", group.rank(), group.ranks()}, geometry);
    PERDURE_TRY(made.status());
    PERDURE_TRY(format_slots(*device, made.value()));
  } else {
    device->load(image);
  }
  PERDURE_TRY_ASSIGN(const Region region, check_region(*device));
  PERDURE_TRY_ASSIGN(rank.pool, Pool::attach(std::move(device), region, group, {}));
  return rank.pool
      ->open_array("u", {ArrayType::int64, ArrayMode::copy, true, {words}}, {rank.buffer.data()})
      .status();
}

Status commit(Rank& rank, std::uint64_t version) {
  std::ranges::fill(rank.buffer, version);
  return rank.pool->commit().status();
}

// A call, as the program makes it, and how the sentence names it.
struct Call {
  std::string name;
  std::string named;
  std::function<Status(Pool&)> make;
  std::function<Status(Pool&)> prepare = [](Pool&) { return Status::success(); };
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"commit", "perdure_commit of version 4", [](Pool& pool) { return pool.commit().status(); }},
      {"restart", "perdure_restart", [](Pool& pool) { return pool.restart().status(); }},
      {"restore 2", "perdure_restore to version 2", [](Pool& pool) { return pool.restore(2); }},
      {"restore 3", "perdure_restore to version 3", [](Pool& pool) { return pool.restore(3); }},
      {"delete 1", "perdure_delete_version of version 1",
       [](Pool& pool) { return pool.delete_version(1); }},
      {"delete 2", "perdure_delete_version of version 2",
       [](Pool& pool) { return pool.delete_version(2); }},
      {"commit_wait", "perdure_commit_wait of version 4, which an earlier call began",
       [](Pool& pool) { return pool.commit_wait().status(); },
       [](Pool& pool) { return pool.commit_begin(); }},
      {"commit after commit_begin", "perdure_commit of version 4, which an earlier call began",
       [](Pool& pool) { return pool.commit().status(); },
       [](Pool& pool) { return pool.commit_begin(); }},
      {"restore after commit_begin", "perdure_restore of version 4, which an earlier call began",
       [](Pool& pool) { return pool.restore(2); }, [](Pool& pool) { return pool.commit_begin(); }},
      {"captured", "perdure_ipv_persist of version 4, which an earlier call began",
       [](Pool& pool) { return pool.commit_captured().status(); },
       [](Pool& pool) { return pool.commit_capture(); }},
      {"open on all", "the opening of an array on all ranks",
       [](Pool& pool) {
         return pool.open_array_on_all("v", {ArrayType::int64, ArrayMode::copy, true, {words}}, {})
             .status();
       }},
      {"another number of words", "levels",
       [](Pool& pool) {
         const CollectiveCall call(pool.group(), "levels");
         std::array<std::uint64_t, 3> three{};
         return agree_max(pool.group(), Status::success(), three);
       }},
  };
  return all;
}

void expect_mismatch(const Status& status, const Call& one, const Call& other) {
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
  for (const std::string& part : {std::string("collective calls do not match"), one.named,
                                  other.named, std::string("rank 0 is in ")}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << part << " is not in: " << status.message();
  }
}

using Image = std::vector<std::byte>;

Image image_of(const Rank& rank) {
  return {rank.medium->durable().begin(), rank.medium->durable().end()};
}

// Rank 0 makes one call, the others another one. Then all go on, and are killed.
class Meeting {
 public:
  Meeting(std::uint32_t ranks, const Call& one, const Call& other)
      : job_(ranks), one_(one), other_(other), images_(ranks), after_(ranks) {}

  void run() {
    job_.run([this](ThreadGroup& group) {
      const Status done = run_rank(group);
      EXPECT_TRUE(done.ok()) << "rank " << group.rank() << ": " << done.message();
      if (!done.ok()) job_.end();
    });
    restart_from(after_, committed);       // as if all had been killed right after the mismatch
    restart_from(images_, committed + 1);  // and later
  }

 private:
  const Call& call_of(const Group& group) const { return group.rank() == 0 ? one_ : other_; }

  Status run_rank(Group& group) {
    Rank rank;
    PERDURE_TRY(open(rank, group));
    PERDURE_TRY(rank.pool->restart().status());
    for (std::uint64_t v = 1; v <= committed; ++v) PERDURE_TRY(commit(rank, v));
    std::ranges::fill(rank.buffer, 99);
    PERDURE_TRY(call_of(group).prepare(*rank.pool));
    expect_mismatch(call_of(group).make(*rank.pool), one_, other_);
    after_[group.rank()] = image_of(rank);
    PERDURE_TRY(check_as_before(*rank.pool));
    PERDURE_TRY(commit(rank, committed + 1));
    if (rank.pool->status().version != committed + 1) return {Code::wrong_state, "another number"};
    images_[group.rank()] = image_of(rank);
    return Status::success();
  }

  static Status check_as_before(const Pool& pool) {
    std::vector<std::uint64_t> held;
    for (const VersionInfo& info : pool.versions()) held.push_back(info.version);
    if (held == std::vector<std::uint64_t>{3, 2, 1} && !pool.commit_pending()) {
      return Status::success();
    }
    return Status(Code::wrong_state, "the pool holds ", listed(held));
  }

  void restart_from(const std::vector<Image>& images, std::uint64_t expected) {
    ThreadJob job(job_.ranks());
    job.run([&](ThreadGroup& group) {
      Rank rank;
      const Status opened = open(rank, group, images[group.rank()]);
      EXPECT_TRUE(opened.ok()) << opened.message();
      if (!opened.ok()) return job.end();
      EXPECT_EQ(rank.pool->restart().value(), expected);
      EXPECT_EQ(rank.buffer, std::vector<std::uint64_t>(words, expected));
    });
  }

  ThreadJob job_;
  const Call& one_;
  const Call& other_;
  std::vector<Image> images_;
  std::vector<Image> after_;
};

class Mismatch : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Mismatch, testing::Values(2U, 4U));

TEST_P(Mismatch, of_any_two_calls_is_an_error_on_all_ranks_that_names_both_and_changes_nothing) {
  for (const Call& one : calls()) {
    for (const Call& other : calls()) {
      if (one.name == other.name) continue;
      SCOPED_TRACE(one.name + " meets " + other.name);
      Meeting(GetParam(), one, other).run();
      if (HasFailure()) return;
    }
  }
}

// Three kinds of calls at once, by ranks that are drawn.
TEST(Mismatch, of_many_calls_is_one_error_after_which_all_go_on) {
  std::mt19937_64 random(test_seed());
  for (int trial = 0; trial < 40; ++trial) {
    std::array<std::size_t, 4> drawn{};
    for (std::size_t& each : drawn) each = random() % calls().size();
    if (std::ranges::all_of(drawn, [&](std::size_t each) { return each == drawn[0]; })) continue;
    ThreadJob job(4);
    job.run([&](ThreadGroup& group) {
      const Call& call = calls()[drawn[group.rank()]];
      Rank rank;
      bool good = open(rank, group).ok() && rank.pool->restart().ok();
      for (std::uint64_t v = 1; v <= committed; ++v) good = good && commit(rank, v).ok();
      good = good && call.prepare(*rank.pool).ok();
      const Status met = call.make(*rank.pool);
      EXPECT_EQ(met.code(), Code::invalid_argument) << call.name << ": " << met.message();
      good = good && commit(rank, committed + 1).ok();
      EXPECT_TRUE(good) << call.name;
      if (!good) job.end();
    });
    if (HasFailure()) return;
  }
}

// cases.md's program, in essence: the restart of one rank meets the commit of another.
TEST(Mismatch, of_a_restart_and_a_commit_acknowledges_no_version) {
  ThreadJob job(2);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    const Status met = group.rank() == 0 ? rank.pool->restart().status() : commit(rank, 1);
    EXPECT_EQ(met.code(), Code::invalid_argument) << met.message();
    EXPECT_EQ(rank.pool->status().version, 0U);
    EXPECT_EQ(commit(rank, 1).code(), Code::ok);
  });
}

// One rank gave up before its exchange, as one that runs out of memory does: its next call meets
// the others' exchange of the call that it left.
TEST(Mismatch, of_a_call_and_the_one_after_it_is_found_by_their_count) {
  ThreadJob job(2);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    const std::uint64_t made = group.call().count;
    if (group.rank() == 0) ++group.call().count;
    const Status met = commit(rank, 1);
    EXPECT_EQ(met.code(), Code::invalid_argument) << met.message();
    for (const std::uint64_t count : {made + 1, made + 2}) {
      EXPECT_NE(met.message().find("(call " + std::to_string(count) + ")"), std::string::npos)
          << met.message();
    }
    EXPECT_EQ(commit(rank, 1).code(), Code::ok);
  });
}

TEST(Mismatch, of_a_rank_whose_call_failed_says_that_too) {
  ThreadJob job(2);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    ASSERT_TRUE(commit(rank, 1).ok());
    const Status met = group.rank() == 0 ? rank.pool->restore(7) : commit(rank, 2);
    EXPECT_EQ(met.code(), Code::invalid_argument) << met.message();
    const Status own = group.rank() == 0
                           ? rank.pool->commit({Code::no_space, "the disk is full"}).status()
                           : rank.pool->delete_version(1);
    EXPECT_EQ(own.code(), Code::invalid_argument) << own.message();
    EXPECT_EQ(own.message().find("the disk is full") != std::string::npos, group.rank() == 0);
    EXPECT_EQ(commit(rank, 2).code(), Code::ok);
  });
}

// The calls are the same, and one of them fails: that is no mismatch.
TEST(Mismatch, is_not_said_of_a_rank_that_only_fails) {
  ThreadJob job(2);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    const Status ready = group.rank() == 0 ? Status(Code::no_space, "full") : Status::success();
    EXPECT_EQ(rank.pool->commit(ready).status().code(),
              group.rank() == 0 ? Code::no_space : Code::peer_failed);
    EXPECT_EQ(rank.pool->restore(7).code(), Code::not_found);
    EXPECT_EQ(commit(rank, 1).code(), Code::ok);
  });
}

// An array that is closed has a box in the versions that come, too.
TEST(Mismatch, is_not_said_of_a_rank_that_can_not_open_an_array_which_keeps_its_box_then) {
  ThreadJob job(2);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    const ArrayShape shape{ArrayType::int64, ArrayMode::copy, true, {words}};
    const GlobalBox box{{2 * words}, {words * group.rank()}};
    const GlobalBox other{{4 * words}, {words}};
    const auto made = rank.pool->open_array_on_all("v", shape, {}, Status::success(), box);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_TRUE(commit(rank, 1).ok());
    ASSERT_TRUE(rank.pool->close_array(made.value(), false).ok());
    const Status own = group.rank() == 0 ? Status(Code::no_space, "full") : Status::success();
    EXPECT_FALSE(rank.pool->open_array_on_all("v", shape, {}, own, other).ok());
    ASSERT_TRUE(commit(rank, 2).ok());
    Rank again;
    ASSERT_TRUE(open(again, group, image_of(rank)).ok());
    const GlobalBoxes boxes = boxes_of(again.pool->chosen());
    ASSERT_EQ(boxes.size(), 1U);
    EXPECT_EQ(boxes.begin()->second.first, box.first);
    EXPECT_EQ(boxes.begin()->second.global_shape, box.global_shape);
  });
}

TEST(Mismatch, with_a_rank_that_leaves_lets_the_others_do_nothing_more_and_wait_for_nobody) {
  ThreadJob job(4);
  job.run([&](ThreadGroup& group) {
    Rank rank;
    ASSERT_TRUE(open(rank, group).ok());
    ASSERT_TRUE(rank.pool->restart().ok());
    ASSERT_TRUE(commit(rank, 1).ok());
    if (group.rank() == 2) {
      const CollectiveCall call(group, "perdure_close", CollectiveCall::Kind::last);
      EXPECT_EQ(agree(group, Status::success()).code(), Code::invalid_argument);
      return;
    }
    const Status met = group.rank() == 1 ? rank.pool->delete_version(1) : commit(rank, 2);
    EXPECT_EQ(met.code(), Code::invalid_argument) << met.message();
    for (const Status& next : {commit(rank, 2), rank.pool->restore(1)}) {
      EXPECT_EQ(next.code(), Code::wrong_state) << next.message();
      EXPECT_NE(next.message().find("rank 2 has closed"), std::string::npos) << next.message();
    }
  });
}

}  // namespace
}  // namespace perdure
