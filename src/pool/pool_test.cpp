// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: what a user may and may not do, and what comes back, on a device in memory.
// ctest: LONG 600
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "pool/testing/pool_fixture.hpp"
#include "pool/written_tracker.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

TEST_F(PoolTest, a_new_pool_starts_at_version_zero_with_zeros) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::twin));
  ASSERT_EQ(pool_->restart().value(), 0U);
  EXPECT_EQ(words(u)[999], 0);
  EXPECT_EQ(pool_->commit().value(), 1U);
  EXPECT_EQ(pool_->commit().value(), 2U);
}

TEST_F(PoolTest, commit_before_restart_is_refused_and_loses_nothing) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy));
  ASSERT_TRUE(pool_->restart().ok());
  words(u)[0] = 42;
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  array("u", shape(ArrayMode::copy));
  EXPECT_EQ(pool_->commit().status().code(), Code::wrong_state);
  crash();
  open();
  u = array("u", shape(ArrayMode::copy));
  EXPECT_EQ(pool_->restart().value(), 1U);
  EXPECT_EQ(words(u)[0], 42);
}

TEST_F(PoolTest, another_shape_type_or_mode_is_refused_with_both_named) {
  open();
  array("u", shape(ArrayMode::copy));
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  for (const ArrayShape& other :
       {shape(ArrayMode::twin), shape(ArrayMode::copy, 1001), shape(ArrayMode::copy, 1000, false),
        ArrayShape{ArrayType::float64, ArrayMode::copy, true, {1000}},
        ArrayShape{ArrayType::int64, ArrayMode::copy, true, {10, 100}}}) {
    EXPECT_EQ(array("u", other), nullptr);
    EXPECT_EQ(status_.code(), Code::shape_mismatch);
    EXPECT_NE(status_.message().find("int64[1000] copy"), std::string::npos);
    EXPECT_NE(status_.message().find(other.text()), std::string::npos);
  }
  EXPECT_NE(array("u", shape(ArrayMode::copy)), nullptr);  // and nothing was lost
  EXPECT_EQ(pool_->restart().value(), 1U);
}

TEST_F(PoolTest, an_array_that_is_not_opened_again_keeps_its_contents) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy));
  array("v", shape(ArrayMode::twin));
  ASSERT_TRUE(pool_->restart().ok());
  words(u)[7] = 7;
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();  // a run that knows nothing of u
  array("v", shape(ArrayMode::twin));
  ASSERT_TRUE(pool_->restart().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool_->commit().ok());
  u = array("u", shape(ArrayMode::copy));  // late, but it is still there
  ASSERT_NE(u, nullptr);
  EXPECT_EQ(words(u)[7], 7);
  words(u)[7] = 8;
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  u = array("u", shape(ArrayMode::copy));
  ASSERT_EQ(pool_->restart().value(), 5U);
  EXPECT_EQ(words(u)[7], 8);
}

TEST_F(PoolTest, an_array_can_be_added_after_versions_were_committed) {
  open();
  array("u", shape(ArrayMode::copy));
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  VersionedArray* late = array("late", shape(ArrayMode::log), {nullptr, true});
  ASSERT_NE(late, nullptr);
  words(late)[3] = 33;
  ASSERT_TRUE(late->mark(24, 8).ok());
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  array("u", shape(ArrayMode::copy));
  late = array("late", shape(ArrayMode::log), {nullptr, true});
  ASSERT_EQ(pool_->restart().value(), 2U);
  EXPECT_EQ(words(late)[3], 33);
}

TEST_F(PoolTest, scalars_come_back_and_their_size_is_checked) {
  open();
  std::uint64_t iteration = 5;
  std::array<char, 5000> random{};
  random[4999] = 'x';
  // The slots of this pool are small: the second scalar does not fit.
  ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, sizeof iteration).ok());
  EXPECT_EQ(pool_->bind_scalar("random", random.data(), random.size()).code(), Code::no_space);
  EXPECT_EQ(pool_->bind_scalar("iteration", &iteration, 8).code(), Code::invalid_argument);
  EXPECT_EQ(pool_->bind_scalar("big", random.data(), 16385).code(), Code::invalid_argument);
  EXPECT_EQ(pool_->bind_scalar("none", nullptr, 8).code(), Code::invalid_argument);
  ASSERT_TRUE(pool_->restart().ok());
  EXPECT_EQ(iteration, 5U);  // a new pool leaves scalars as they were
  iteration = 6;
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  std::uint32_t narrow = 0;
  EXPECT_EQ(pool_->bind_scalar("iteration", &narrow, 4).code(), Code::shape_mismatch);
  iteration = 0;
  ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, 8).ok());
  ASSERT_TRUE(pool_->restart().ok());
  EXPECT_EQ(iteration, 6U);
}

TEST_F(PoolTest, a_full_device_is_an_error_and_leaves_nothing_half_made) {
  open();
  EXPECT_EQ(array("huge", shape(ArrayMode::copy, 1 << 20)), nullptr);
  EXPECT_EQ(status_.code(), Code::no_space);
  VersionedArray* u = array("u", shape(ArrayMode::copy));
  ASSERT_NE(u, nullptr);
  ASSERT_TRUE(pool_->restart().ok());
  words(u)[1] = 1;
  EXPECT_EQ(pool_->commit().value(), 1U);
}

TEST_F(PoolTest, log_mode_saves_only_what_changed) {
  const char* const tracker = std::getenv("PERDURE_TRACKER");
  if (tracker != nullptr) GTEST_SKIP() << "faults are taken by larger blocks";
  if (!WrittenTracker::available().ok()) GTEST_SKIP() << "this kernel does not tell pages";
  open();
  VersionedArray* u = array("u", shape(ArrayMode::log, 512 * 100));  // 100 blocks of 4096 bytes
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  ASSERT_TRUE(pool_->commit().ok());  // both copies are whole now
  const std::uint64_t before = pool_->status().committed_bytes;
  words(u)[5] = 1;
  words(u)[512 * 70] = 2;
  ASSERT_TRUE(pool_->commit().ok());
  EXPECT_EQ(pool_->status().committed_bytes - before, 2U * 4096);
  ASSERT_TRUE(pool_->commit().ok());  // the other copy lacks the same two pages
  EXPECT_EQ(pool_->status().committed_bytes - before, 4U * 4096);
  ASSERT_TRUE(pool_->commit().ok());
  EXPECT_EQ(pool_->status().committed_bytes - before, 4U * 4096);
  crash();
  open();
  u = array("u", shape(ArrayMode::log, 512 * 100));
  ASSERT_TRUE(pool_->restart().ok());
  EXPECT_EQ(words(u)[5], 1);
  EXPECT_EQ(words(u)[512 * 70], 2);
}

TEST_F(PoolTest, streamed_rows_are_not_flushed_again_and_come_back) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::twin, 1000, false));
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  std::vector<std::int64_t> row(100);
  const std::uint64_t before = pool_->status().committed_bytes;
  for (std::int64_t r = 0; r < 10; ++r) {
    std::iota(row.begin(), row.end(), r * 100);
    ASSERT_TRUE(u->write(static_cast<std::uint64_t>(r) * 800, 800, row.data()).ok());
  }
  ASSERT_TRUE(pool_->commit().ok());
  EXPECT_EQ(pool_->status().committed_bytes - before, 0U);
  crash();
  open();
  u = array("u", shape(ArrayMode::twin, 1000, false));
  ASSERT_EQ(pool_->restart().value(), 2U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(reinterpret_cast<const std::int64_t*>(u->consistent())[i], i);
  }
}

TEST_F(PoolTest, a_failing_fence_fails_the_commit_and_the_version_before_stays) {
  for (std::uint64_t failing = 1; failing <= 2; ++failing) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy));
    ASSERT_TRUE(pool_->restart().ok());
    words(u)[0] = 1;
    ASSERT_TRUE(pool_->commit().ok());
    words(u)[0] = 2;
    medium_->failing_fence = medium_->counters().fence_calls + failing;
    EXPECT_EQ(pool_->commit().status().code(), Code::io_error) << failing;
    EXPECT_EQ(pool_->status().version, 1U);
    if (failing == 2) {  // the caller may try again
      EXPECT_EQ(pool_->commit().value(), 2U);
    }
    crash();
    open();
    u = array("u", shape(ArrayMode::copy));
    EXPECT_EQ(pool_->restart().value(), failing == 2 ? 2U : 1U);
    EXPECT_EQ(words(u)[0], failing == 2 ? 2 : 1);
  }
}

TEST_F(PoolTest, a_flipped_bit_in_the_data_is_an_error_that_names_the_bytes) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 5000));
  ASSERT_TRUE(pool_->restart().ok());
  words(u)[1] = 77;
  ASSERT_TRUE(pool_->commit().ok());
  const std::uint64_t offset = u->copy_offset(u->consistent_copy());
  crash();
  image_[offset + 9000] ^= std::byte{4};
  open();
  array("u", shape(ArrayMode::copy, 5000));
  const auto restored = pool_->restart();
  ASSERT_EQ(restored.status().code(), Code::damaged);
  EXPECT_NE(restored.status().message().find("bytes 8192 to 12287"), std::string::npos);
}

// P2: every bit of header, state words and bodies. What comes back is right, or it is an error;
// with PERDURE_ALLOW_OLDER an older version may come back instead, never a wrong one.
TEST_F(PoolTest, no_flipped_bit_of_the_metadata_gives_a_wrong_answer) {
  for (const std::uint64_t versions : {1U, 2U, 3U}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy, 16));
    std::uint64_t iteration = 0;
    ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, 8).ok());
    ASSERT_TRUE(pool_->restart().ok());
    for (std::uint64_t v = 1; v <= versions; ++v) {
      words(u)[0] = static_cast<std::int64_t>(v);
      iteration = v * 10;
      ASSERT_TRUE(pool_->commit().ok());
    }
    crash();
    const auto good = image_;
    std::uint64_t older = 0;
    const Cases bits = some_cases(0, 5);
    for (std::size_t bit = bits.first; bit < (256 + 2 * 4096) * 8; bit += bits.step) {
      image_ = good;
      image_[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      auto device = std::make_unique<CrashDevice>(1 << 16, 64);
      device->load(image_);
      auto region = check_region(*device);
      if (!region.ok()) continue;
      PoolOptions options;
      options.allow_older = bit % 2 == 0;
      auto pool = Pool::attach(std::move(device), region.value(), group_, options);
      if (!pool.ok()) {
        ASSERT_EQ(pool.status().code(), Code::damaged);
        continue;
      }
      auto opened = pool.value()->open_array("u", shape(ArrayMode::copy, 16), {});
      iteration = 0;
      ASSERT_TRUE(pool.value()->bind_scalar("iteration", &iteration, 8).ok());
      const auto restored = pool.value()->restart();
      if (!restored.ok()) continue;
      if (restored.value() != versions) {
        ASSERT_TRUE(options.allow_older) << "bit " << bit;
        ASSERT_EQ(restored.value(), versions - 1);
        ASSERT_TRUE(pool.value()->status().fell_back);
        ++older;
      }
      ASSERT_EQ(iteration, restored.value() * 10) << "bit " << bit;
      if (restored.value() > 0) {
        ASSERT_EQ(words(opened.value())[0], static_cast<std::int64_t>(restored.value()));
      }
    }
    EXPECT_GT(older, 0U);  // the way back was really taken
  }
}

// Another rank whose commit of 3 has returned puts data of 4 where 2 is, before this rank opens the
// slot of 4; then 3 is damaged here (commit.cpp, I5).
TEST_F(PoolTest, falling_back_to_what_others_stored_over_is_refused) {
  for (const bool checksums : {true, false}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::twin, 100, checksums));
    ASSERT_TRUE(pool_->restart().ok());
    for (std::int64_t v = 1; v <= 2; ++v) {
      words(u)[0] = v;
      ASSERT_TRUE(pool_->commit().ok());
    }
    const std::uint64_t older = u->copy_offset(u->consistent_copy());
    words(u)[0] = 3;
    std::vector<std::byte> before_opening;
    std::uint64_t fences = 0;
    medium_->on_fence = [&](CrashDevice& device) {  // the third one opens the slot of 4
      if (++fences == 3) before_opening.assign(device.durable().begin(), device.durable().end());
    };
    ASSERT_TRUE(pool_->commit().ok());
    crash();
    image_ = before_opening;
    image_[older] = std::byte{77};
    image_[256 + 4096 + 64 + 70] ^= std::byte{1};  // the body of 3, in slot 1
    PoolOptions options;
    options.allow_older = true;
    open(options);
    if (!checksums) {
      EXPECT_EQ(attach_status_.code(), Code::damaged);
      continue;
    }
    ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
    EXPECT_EQ(pool_->restart().status().code(), Code::damaged);  // though u is not even opened
  }
}

TEST_F(PoolTest, asynchronous_commit_takes_what_was_there_when_it_began) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 10000));
  std::uint64_t iteration = 1;
  ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, 8).ok());
  ASSERT_TRUE(pool_->restart().ok());
  words(u)[9999] = 1;
  ASSERT_TRUE(pool_->commit_begin().ok());
  iteration = 2;
  ASSERT_TRUE(pool_->before_write(*u).ok());
  words(u)[9999] = 2;
  ASSERT_EQ(pool_->commit_wait().value(), 1U);
  EXPECT_EQ(pool_->commit_wait().status().code(), Code::wrong_state);
  crash();
  open();
  u = array("u", shape(ArrayMode::copy, 10000));
  ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, 8).ok());
  ASSERT_EQ(pool_->restart().value(), 1U);
  EXPECT_EQ(words(u)[9999], 1);
  EXPECT_EQ(iteration, 1U);
}

TEST_F(PoolTest, commits_touch_neither_more_nor_less_than_they_must) {
  open();
  array("u", shape(ArrayMode::copy, 1024));
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  const DeviceCounters before = medium_->counters();
  ASSERT_TRUE(pool_->commit().ok());
  const DeviceCounters after = medium_->counters();
  EXPECT_EQ(after.fence_calls - before.fence_calls, 3U);               // body, state, successor
  EXPECT_EQ(after.copied_bytes - before.copied_bytes, 8192U + 2 * 8);  // data and its table
}

// Says what was asked of it.
class Listener final : public Companion {
 public:
  std::string name() const override { return "a listener"; }
  Status prepare(std::uint64_t version) override {
    heard += "prepare " + std::to_string(version) + "; ";
    return answer;
  }
  void committed(std::uint64_t version) override {
    heard += "committed " + std::to_string(version) + "; ";
  }
  CompanionShare share() override { return {name(), {}, 0}; }
  Status read_share(std::uint64_t, std::uint64_t, std::span<std::byte>) override {
    return Status::success();
  }
  void failed(const Status& status) override {
    heard += "failed; ";
    answer = status;
  }
  void pool_closed() override { heard += "closed; "; }
  std::string heard;
  Status answer;
};

TEST_F(PoolTest, a_companion_is_prepared_before_each_version_and_told_of_it) {
  open();
  Listener listener;
  EXPECT_EQ(pool_->add_companion(listener, false).code(), Code::wrong_state);
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->add_companion(listener, false).ok());
  ASSERT_TRUE(pool_->commit().ok());
  EXPECT_EQ(listener.heard, "prepare 1; committed 1; ");
  listener.heard.clear();
  listener.answer = Status(Code::io_error, "not durable");
  EXPECT_EQ(pool_->commit().status().message(), "not durable");
  EXPECT_EQ(listener.heard, "prepare 2; ");
  listener.answer = Status::success();
  EXPECT_EQ(pool_->commit().value(), 2U);
  listener.heard.clear();
  pool_.reset();
  EXPECT_EQ(listener.heard, "closed; ");
}

TEST_F(PoolTest, a_companion_is_told_when_nobody_knows_which_version_counts) {
  int broke = 0;
  for (std::uint64_t failing = 1; failing <= 3; ++failing) {
    image_.clear();
    open();
    Listener listener;
    ASSERT_TRUE(pool_->restart().ok());
    ASSERT_TRUE(pool_->add_companion(listener, false).ok());
    ASSERT_TRUE(pool_->commit().ok());
    listener.heard.clear();
    medium_->failing_fence = medium_->counters().fence_calls + failing;
    medium_->failing_fences = 2;  // that of the state word, and that which takes it back
    const bool failed = !pool_->commit().ok();
    medium_->failing_fence = 0;
    const bool goes_on = pool_->commit().ok();
    EXPECT_EQ(failed && !goes_on, listener.heard.find("failed; ") != std::string::npos)
        << failing << ": " << listener.heard;
    broke += failed && !goes_on ? 1 : 0;
    pool_.reset();
  }
  EXPECT_NE(broke, 0);
}

TEST_F(PoolTest, with_a_companion_nothing_is_committed_in_the_background_nor_taken_back) {
  open();
  Listener listener;
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->add_companion(listener, false).ok());
  for (const Status& refused :
       {pool_->commit_begin(), pool_->commit_staged().status(), pool_->restore(0)}) {
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_NE(refused.message().find("a listener is committed with this pool"), std::string::npos);
  }
  pool_->remove_companion(listener);
  EXPECT_TRUE(pool_->commit_begin().ok());
  EXPECT_TRUE(pool_->commit_wait().ok());
  EXPECT_EQ(listener.heard, "");
}

TEST_F(PoolTest, a_commit_that_its_caller_refuses_leaves_the_version_before) {
  open();
  VersionedArray* a = array("a", shape(ArrayMode::copy));
  ASSERT_TRUE(pool_->restart().ok());
  words(a)[0] = 7;
  ASSERT_EQ(pool_->commit().value(), 1U);
  words(a)[0] = 8;
  EXPECT_FALSE(pool_->commit({Code::wrong_state, "the caller found something wrong"}).ok());
  crash();
  open();
  a = array("a", shape(ArrayMode::copy));
  EXPECT_EQ(pool_->restart().value(), 1U);
  EXPECT_EQ(words(a)[0], 7);
}

TEST_F(PoolTest, a_commit_in_two_halves_takes_the_scalars_of_the_first) {
  open();
  std::uint64_t step = 0;
  ASSERT_TRUE(pool_->bind_scalar("step", &step, sizeof step).ok());
  VersionedArray* a = array("a", shape(ArrayMode::copy));
  ASSERT_TRUE(pool_->restart().ok());
  words(a)[3] = 5;
  step = 1;
  ASSERT_TRUE(pool_->commit_capture().ok());
  step = 2;
  ASSERT_EQ(pool_->commit_captured().value(), 1U);
  ASSERT_FALSE(pool_->commit_capture({Code::io_error, "the caller's"}).ok());
  EXPECT_EQ(pool_->commit_captured().status().code(), Code::io_error);
  crash();
  open();
  ASSERT_TRUE(pool_->bind_scalar("step", &step, sizeof step).ok());
  a = array("a", shape(ArrayMode::copy));
  EXPECT_EQ(pool_->restart().value(), 1U);
  EXPECT_EQ(step, 1U);
  EXPECT_EQ(words(a)[3], 5);
}

// Says that it changed, and has nothing to flush: the device takes stores at once.
class AlwaysChanged : public TwinWriter {
 public:
  bool changed() const override { return true; }
  Result<std::uint64_t> save() override { return std::uint64_t{0}; }
  std::byte* memory() const override { return nullptr; }
};

TEST_F(PoolTest, a_version_is_finished_when_the_next_one_is_stored_to_a_spare_copy) {
  AlwaysChanged writer;
  ArrayOptions options;
  options.writer = &writer;
  const ArrayShape shape{ArrayType::int64, ArrayMode::twin, false, {8}};
  const auto open_both = [&] {
    open();
    options.spare_copy = true;
    VersionedArray* spared = pool_->open_array("spared", shape, options).take();
    options.spare_copy = false;
    return std::pair{spared, pool_->open_array("plain", shape, options).take()};
  };
  const auto store = [&](VersionedArray* array, std::int64_t value) {
    pool_->device().copy(array->copy_offset(array->working_copy()), &value, sizeof value);
  };
  auto [spared, plain] = open_both();
  ASSERT_TRUE(pool_->restart().ok());
  EXPECT_TRUE(spared->has_spare_copy());
  for (std::int64_t version = 1; version <= 6; ++version) {
    store(spared, version);
    if (version > 1) {
      ASSERT_EQ(pool_->commit_captured().value(), static_cast<std::uint64_t>(version - 1));
    }
    store(plain, version);
    const std::uint32_t saved = spared->working_copy();
    ASSERT_TRUE(pool_->commit_capture().ok());
    pool_->commit_save();
    EXPECT_FALSE(plain->move_on());
    ASSERT_TRUE(spared->move_on());
    EXPECT_NE(spared->working_copy(), saved);
    EXPECT_NE(spared->working_copy(), spared->consistent_copy());
  }
  crash();
  std::tie(spared, plain) = open_both();
  EXPECT_EQ(pool_->restart().value(), 5U);
  for (const VersionedArray* array : {spared, plain}) {
    EXPECT_EQ(*reinterpret_cast<const std::int64_t*>(array->consistent()), 5) << array->name();
  }
}

TEST_F(PoolTest, a_pool_that_was_closed_to_others_says_what_to_do) {
  open();
  ASSERT_TRUE(pool_->restart().ok());
  pool_->close_to_others("use another pool");
  const auto refused =
      pool_->open_array("late", {ArrayType::byte, ArrayMode::copy, false, {8}}, {});
  EXPECT_EQ(refused.status().code(), Code::wrong_state);
  EXPECT_EQ(refused.status().message(), "use another pool");
}

}  // namespace
}  // namespace perdure
