// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays in memory that only functions of the program reach.
#include "device/testing/queue_device.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "pool/testing/words.hpp"

namespace perdure {
namespace {

// No whole number of blocks, or pages.
constexpr std::uint64_t elements = (std::uint64_t{200} << 10U) / 8 + 77;

using perdure::words_of;
Words words_of(std::int64_t version) {
  return words_of(version, elements);
}

class DeviceFunctionsTest : public PoolTest {
 protected:
  DeviceFunctionsTest() {
    geometry_ = {4096, 4096, 64U << 10U};
    device_max_ = 8 << 20;
  }
  ~DeviceFunctionsTest() override { pool_.reset(); }  // before the device goes

  VersionedArray* array_at(ArrayMode mode, std::byte* buffer, const DeviceFunctions* device,
                           std::uint64_t count, const char* name = "u") {
    ArrayOptions options;
    options.buffer = buffer;
    options.device = device;
    options.keep_contents = options.of_program = true;
    return array(name, shape(mode, count), options);
  }
  std::uint64_t commit() {
    const auto version = pool_->commit();
    EXPECT_TRUE(version.ok()) << version.status().message();
    return version.ok() ? version.value() : 0;
  }
  QueueDevice device_;
  const DeviceFunctions functions_ = device_.functions();
  const DeviceFunctions plain_ = device_.plain_functions();
  VersionedArray* array_ = nullptr;
};

class ModesByFunctions : public DeviceFunctionsTest, public testing::WithParamInterface<ArrayMode> {
 protected:
  // Opens the pool and an array of `buffer`, and restarts.
  std::uint64_t start(std::byte* buffer, const DeviceFunctions* device,
                      std::uint64_t count = elements) {
    open();
    array_ = array_at(GetParam(), buffer, device, count);
    EXPECT_NE(array_, nullptr) << status_.message();
    const auto version = pool_->restart();
    EXPECT_TRUE(version.ok()) << version.status().message();
    return version.ok() ? version.value() : 0;
  }
  // What a restart after a crash at this moment has, in memory of the host.
  Words after_crash(std::uint64_t count = elements) {
    crash();
    start(nullptr, nullptr, count);
    return {words(array_), words(array_) + count};
  }
};

INSTANTIATE_TEST_SUITE_P(All, ModesByFunctions, testing::Values(ArrayMode::copy, ArrayMode::log),
                         [](const auto& each) {
                           return each.param == ArrayMode::copy ? "copy" : "log";
                         });

TEST_P(ModesByFunctions, a_commit_takes_what_the_program_had_asked_for) {
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  for (std::int64_t version = 1; version <= 6; ++version) {
    device_.store(buffer, words_of(version));
    ASSERT_TRUE(pool_->commit_begin().ok());
    device_.store(buffer, words_of(-version));  // no part of the version
    ASSERT_TRUE(pool_->commit_wait().ok());
  }
  EXPECT_EQ(device_.read<std::int64_t>(buffer, elements), words_of(-6));
  EXPECT_EQ(after_crash(), words_of(6));
}

TEST_P(ModesByFunctions, a_restart_and_a_restore_fill_the_buffer) {
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  device_.store(buffer, words_of(1));
  commit();
  crash();
  std::byte* const other = device_.place(elements * 8);
  device_.store(other, words_of(-1));
  EXPECT_EQ(start(other, &functions_), 1U);
  EXPECT_EQ(device_.read<std::int64_t>(other, elements), words_of(1));
  device_.store(other, words_of(2));
  commit();
  device_.store(other, words_of(3));
  ASSERT_TRUE(pool_->restore(2).ok());
  EXPECT_EQ(device_.read<std::int64_t>(other, elements), words_of(2));
  EXPECT_EQ(after_crash(), words_of(2));
}

TEST_P(ModesByFunctions, a_new_array_is_as_the_buffer_was) {
  std::byte* const buffer = device_.place(elements * 8);
  device_.store(buffer, words_of(5));
  start(buffer, &functions_);
  EXPECT_EQ(device_.read<std::int64_t>(buffer, elements), words_of(5));
}

TEST_P(ModesByFunctions, one_function_is_enough) {
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &plain_);
  EXPECT_EQ(pool_->status().lacking_snapshots, 1U);
  for (std::int64_t version = 1; version <= 3; ++version) {
    device_.store(buffer, words_of(version));
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->before_write(*array_).ok());
    device_.store(buffer, words_of(-version));
    ASSERT_TRUE(pool_->commit_wait().ok());
  }
  EXPECT_EQ(after_crash(), words_of(3));
}

TEST_P(ModesByFunctions, without_room_for_a_snapshot_commits_are_right) {
  device_.room_left = 0;
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  EXPECT_EQ(pool_->status().lacking_snapshots, 1U);
  for (std::int64_t version = 1; version <= 3; ++version) {
    device_.store(buffer, words_of(version));
    ASSERT_TRUE(pool_->commit_begin().ok());
    device_.store(buffer, words_of(-version));
    ASSERT_TRUE(pool_->commit_wait().ok());
  }
  EXPECT_EQ(after_crash(), words_of(3));
}

TEST_P(ModesByFunctions, whichever_call_fails_the_version_before_is_whole) {
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  device_.store(buffer, words_of(1));
  commit();
  const std::uint64_t before = device_.calls;
  device_.store(buffer, words_of(2));
  commit();
  const std::uint64_t each = device_.calls - before;
  ASSERT_GT(each, 3U);
  std::int64_t newest = 2;
  for (std::uint64_t call = 1; call <= each; ++call) {
    device_.store(buffer, words_of(100));
    device_.failing = device_.calls + call;
    const auto failed = pool_->commit();
    ASSERT_FALSE(failed.ok()) << "call " << call;
    EXPECT_EQ(failed.status().code(), Code::io_error) << failed.status().message();
    EXPECT_NE(failed.status().message().find("perdure_device"), std::string::npos);
    device_.failing = 0;
    image_.assign(medium_->durable().begin(), medium_->durable().end());
    pool_.reset();
    EXPECT_EQ(start(buffer, &functions_), static_cast<std::uint64_t>(newest)) << "call " << call;
    EXPECT_EQ(device_.read<std::int64_t>(buffer, elements), words_of(newest)) << "call " << call;
    device_.store(buffer, words_of(++newest));
    commit();
  }
  EXPECT_EQ(after_crash(), words_of(newest));
}

TEST_P(ModesByFunctions, after_a_failed_commit_the_next_one_has_all) {
  std::byte* const buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  device_.store(buffer, words_of(1));
  commit();
  device_.store(buffer, words_of(2));
  device_.failing = device_.calls + 3;
  EXPECT_FALSE(pool_->commit().ok());
  device_.failing = 0;
  EXPECT_EQ(commit(), 2U);
  EXPECT_EQ(after_crash(), words_of(2));
}

// A wait tells once that a copy failed, and the program may be who waits.
TEST_P(ModesByFunctions, a_failure_that_the_program_is_told_fails_the_commit) {
  QueueDevice other;
  const DeviceFunctions of_other = other.functions();
  std::byte* const buffer = device_.place(elements * 8);
  open();
  array_ = array_at(GetParam(), other.place(elements * 8), &of_other, elements, "a");
  VersionedArray* const lost = array_at(GetParam(), buffer, &functions_, elements);
  ASSERT_TRUE(pool_->restart().ok());
  device_.store(buffer, words_of(1));
  commit();
  std::promise<void> told;
  other.gate = told.get_future().share();
  device_.store(buffer, words_of(2));
  device_.loses = true;
  ASSERT_TRUE(pool_->commit_begin().ok());
  EXPECT_EQ(pool_->before_write(*lost).code(), Code::io_error);
  told.set_value();
  EXPECT_EQ(pool_->commit_wait().status().code(), Code::io_error);
  EXPECT_EQ(commit(), 2U);
  pool_.reset();
}

TEST_P(ModesByFunctions, sizes_follow_the_program) {
  std::byte* buffer = device_.place(elements * 8);
  start(buffer, &functions_);
  device_.store(buffer, words_of(1));
  commit();
  for (const std::uint64_t count : {elements / 3, elements / 2 + 5}) {
    buffer = device_.place(count * 8);
    device_.store(buffer, words_of(7, count));
    ASSERT_TRUE(pool_->resize_array(*array_, {count}, buffer).ok());
    commit();
  }
  EXPECT_EQ(pool_->resize_array(*array_, {elements}, nullptr).code(), Code::unsupported);
  EXPECT_EQ(after_crash(elements / 2 + 5), words_of(7, elements / 2 + 5));
}

TEST_P(ModesByFunctions, a_rank_without_elements_has_nothing_on_the_device) {
  start(nullptr, &functions_, 0);
  commit();
  std::byte* const buffer = device_.place(elements * 8);
  device_.store(buffer, words_of(3));
  const Status grown = pool_->resize_array(*array_, {elements}, buffer);
  ASSERT_TRUE(grown.ok()) << grown.message();
  commit();
  const Status shrunk = pool_->resize_array(*array_, {0}, nullptr);
  ASSERT_TRUE(shrunk.ok()) << shrunk.message();
  EXPECT_EQ(commit(), 3U);
  EXPECT_EQ(after_crash(0), Words());
}

TEST_P(ModesByFunctions, a_run_on_the_processor_goes_on_on_the_device) {
  start(nullptr, nullptr);
  std::ranges::copy(words_of(1), words(array_));
  commit();
  crash();
  std::byte* const buffer = device_.place(elements * 8);
  EXPECT_EQ(start(buffer, &functions_), 1U);
  EXPECT_EQ(device_.read<std::int64_t>(buffer, elements), words_of(1));
}

}  // namespace
}  // namespace perdure
