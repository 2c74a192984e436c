// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays in memory of a GPU whose driver refuses, fails, or has no room: the version before stays
// the newest and whole, and nothing is kept that was taken.
// ctest: LABELS truth
#include "pool/copy_check.hpp"
#include "pool/testing/device_fixture.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_words = (64U << 10U) / sizeof(std::int64_t);
constexpr std::uint64_t elements = 2 * block_words + 3 * 512 + 77;
constexpr int unknown_error = 999;

Words words_of(std::int64_t version) {
  Words all(elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    all[i] = i % 5000 == 0 ? version * 1000 + static_cast<std::int64_t>(i) : 7;
  }
  return all;
}

class DeviceFailure : public DevicePoolTest, public testing::WithParamInterface<ArrayMode> {
 protected:
  Result<VersionedArray*> open_array(std::byte* buffer) {
    return DevicePoolTest::open_array(shape_, buffer);
  }
  void start() { DevicePoolTest::start(shape_, buffer_); }
  void commit(std::int64_t version) {
    gpu_.write(buffer_, words_of(version));
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
  }
  // Versions 1 to 4, while the stream already stores what is in none of them.
  void commit_four_beside(void* stream) {
    const Words later = words_of(-1);
    for (std::int64_t version = 1; version <= 4; ++version) {
      const Words contents = words_of(version);
      gpu_.store(buffer_, contents.data(), elements * 8, stream);
      ASSERT_TRUE(pool_->commit_begin().ok());
      gpu_.store(buffer_, later.data(), elements * 8, stream);
      ASSERT_TRUE(pool_->commit_wait().ok());
      gpu_.synchronise(stream);
    }
  }
  Words after_crash() { return DevicePoolTest::after_crash(shape_); }
  Result<std::uint64_t> commit_by(bool in_background) {
    if (!in_background) return pool_->commit();
    const Status begun = pool_->commit_begin();
    if (begun.ok()) (void)pool_->before_write(*array_);
    return pool_->commit_wait();
  }

  const ArrayShape shape_ = shape(GetParam(), elements);
  std::byte* buffer_ = gpu_.allocate(elements * 8);
};

INSTANTIATE_TEST_SUITE_P(Modes, DeviceFailure, testing::Values(ArrayMode::copy, ArrayMode::log),
                         [](const auto& tested) { return mode_name(tested.param); });

TEST_P(DeviceFailure, a_commit_of_which_any_call_fails_leaves_the_version_before) {
  for (const bool in_background : {false, true}) {
    std::uint64_t failed = 0;
    bool all_passed = false;
    for (std::uint64_t call = 1; !all_passed; ++call) {
      image_.clear();
      start();
      commit(1);
      commit(2);
      gpu_.write(buffer_, words_of(3));
      gpu_.fail(nullptr, call, unknown_error);
      const std::uint64_t calls = gpu_.calls();
      const auto committed = commit_by(in_background);
      all_passed = gpu_.calls() - calls < call;
      gpu_.fail(nullptr, 0, 0);
      if (!committed.ok()) {
        ++failed;
        EXPECT_NE(committed.status().code(), Code::damaged);
        EXPECT_EQ(pool_->status().version, 2U);
        if (call % 3 == 0) {
          EXPECT_EQ(after_crash(), words_of(2)) << call;
          pool_.reset();
          continue;
        }
        if (call % 3 == 1) {
          commit(3);  // what of it was stored before is not counted on
          EXPECT_EQ(after_crash(), words_of(3)) << call;
          pool_.reset();
          continue;
        }
      }
      commit(4);
      commit(5);
      EXPECT_EQ(after_crash(), words_of(5)) << call;
      pool_.reset();
    }
    // In the background the call may be one of before_write(), which is beside those of the save.
    EXPECT_GE(failed, in_background ? 5U : gpu_.is_hip() ? 7U : 8U);
  }
}

TEST_P(DeviceFailure, an_array_of_which_any_call_fails_is_refused_or_right) {
  start();
  commit(1);
  crash();
  const std::uint64_t bytes = gpu_.held("device_bytes");
  bool all_passed = false;
  for (std::uint64_t call = 1; !all_passed; ++call) {
    open();
    const std::uint64_t calls = gpu_.calls();
    gpu_.fail(nullptr, call, unknown_error);
    auto opened = open_array(buffer_);
    Status status = opened.status();
    if (opened.ok()) {
      gpu_.fail(nullptr, call, unknown_error);
      status = pool_->restart().status();
    }
    all_passed = gpu_.calls() - calls < call;
    gpu_.fail(nullptr, 0, 0);
    if (status.ok()) {
      EXPECT_EQ(gpu_.read<std::int64_t>(buffer_, elements), words_of(1)) << call;
    }
    pool_.reset();
    EXPECT_EQ(gpu_.held("device_bytes"), bytes) << call;
    EXPECT_EQ(gpu_.held("registrations"), 0U) << call;
    EXPECT_EQ(gpu_.held("events"), 0U) << call;
    EXPECT_EQ(gpu_.held("streams"), 0U) << call;
  }
}

TEST_P(DeviceFailure, a_broken_context_fails_commits_and_leaves_the_version) {
  start();
  commit(1);
  commit(2);
  gpu_.break_context();
  const auto failed = pool_->commit();
  EXPECT_EQ(failed.status().code(), Code::io_error);
  EXPECT_NE(failed.status().message().find("a kernel of the program failed"), std::string::npos)
      << failed.status().message();
  EXPECT_FALSE(pool_->commit_begin().ok());
  EXPECT_FALSE(pool_->commit_wait().ok());
  EXPECT_EQ(pool_->status().version, 2U);
  crash();
  open();
  auto opened = open_array(nullptr);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(pool_->restart().value(), 2U);
  EXPECT_EQ((Words{words(opened.value()), words(opened.value()) + elements}), words_of(2));
}

TEST_P(DeviceFailure, what_a_pool_took_is_given_back_when_it_is_closed) {
  const std::uint64_t bytes = gpu_.held("device_bytes");
  start();
  commit(1);
  EXPECT_GT(gpu_.held("device_bytes"), bytes);
  EXPECT_GT(gpu_.held("registrations"), 0U);
  pool_.reset();
  EXPECT_EQ(gpu_.held("device_bytes"), bytes);
  EXPECT_EQ(gpu_.held("registrations"), 0U);
  EXPECT_EQ(gpu_.held("events"), 0U);
  EXPECT_EQ(gpu_.held("streams"), 0U);
}

TEST_P(DeviceFailure, without_room_the_transfer_is_waited_for) {
  const bool log = GetParam() == ArrayMode::log;
  gpu_.leave(0);
  start();
  EXPECT_EQ(pool_->status().lacking_snapshots, 1U);
  void* const stream = gpu_.make_stream();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  commit_four_beside(stream);
  EXPECT_EQ(after_crash(), words_of(4));
  gpu_.leave_enough();
  start();
  EXPECT_EQ(pool_->status().lacking_snapshots, 0U) << log;
}

// Every 16th commit that lacks one looks for room.
TEST_P(DeviceFailure, room_that_the_program_gives_back_is_taken_by_a_later_commit) {
  gpu_.leave(0);
  start();
  void* const stream = gpu_.make_stream();
  void* const captured = gpu_.make_stream();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  commit_four_beside(stream);
  gpu_.leave_enough();
  for (std::int64_t version = 5; version <= 15; ++version) commit(version);
  EXPECT_EQ(pool_->status().lacking_snapshots, 1U);
  void* graph = nullptr;
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(captured, 0));
  EXPECT_TRUE(pool_->commit().ok());
  EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(captured, &graph), 0);
  EXPECT_EQ(pool_->status().lacking_snapshots, 0U);
  commit_four_beside(stream);
  EXPECT_EQ(after_crash(), words_of(4));
}

// With the sums and kernels, for which there was none either.
TEST_P(DeviceFailure, what_is_taken_later_is_all_that_an_array_has_that_found_room) {
  if (gpu_.is_hip()) GTEST_SKIP() << "there are no kernels for AMD's GPUs";
  std::uint64_t calls[2];
  for (const bool late : {false, true}) {
    image_.clear();
    if (late) gpu_.leave(0);
    start();
    gpu_.leave_enough();
    for (std::int64_t version = 1; version <= 18; ++version) commit(version);
    calls[late ? 1 : 0] = gpu_.calls("cuLaunchKernel");
    commit(19);
    calls[late ? 1 : 0] = gpu_.calls("cuLaunchKernel") - calls[late ? 1 : 0];
    EXPECT_EQ(after_crash(), words_of(19));
    pool_.reset();
  }
  EXPECT_GT(calls[0], 0U);
  EXPECT_EQ(calls[1], calls[0]);
}

TEST_P(DeviceFailure, room_that_is_not_enough_for_the_program_as_well_is_left_to_it) {
  gpu_.leave(0);
  start();
  const std::uint64_t held = gpu_.held("device_bytes");
  const bool tables = GetParam() == ArrayMode::log && !gpu_.is_hip();
  // The kernels are tried as soon as there is room for that, and give it back.
  gpu_.leave(tables ? 270'000 : elements * 8 * 3 / 2);
  for (std::int64_t version = 1; version <= 33; ++version) commit(version);
  EXPECT_EQ(pool_->status().lacking_snapshots, tables ? 0U : 1U);
  EXPECT_EQ(gpu_.held("device_bytes") == held, !tables);
  gpu_.leave_enough();
  EXPECT_EQ(after_crash(), words_of(33));
}

TEST_P(DeviceFailure, a_commit_that_looks_for_room_and_of_which_any_call_fails_is_right) {
  bool all_passed = false;
  for (std::uint64_t call = 1; !all_passed; ++call) {
    image_.clear();
    gpu_.leave(0);
    start();
    for (std::int64_t version = 1; version <= 15; ++version) commit(version);
    gpu_.leave_enough();
    gpu_.write(buffer_, words_of(16));
    gpu_.fail(nullptr, call, unknown_error);
    const std::uint64_t calls = gpu_.calls();
    const bool committed = pool_->commit().ok();
    all_passed = gpu_.calls() - calls < call;
    gpu_.fail(nullptr, 0, 0);
    EXPECT_EQ(pool_->status().version, committed ? 16U : 15U) << call;
    if (call % 2 == 0) {
      EXPECT_EQ(after_crash(), words_of(committed ? 16 : 15)) << call;
    } else {
      for (std::int64_t version = 17; version <= 20; ++version) commit(version);
      EXPECT_EQ(after_crash(), words_of(20)) << call;
    }
    pool_.reset();
    EXPECT_EQ(gpu_.held("registrations"), 0U);
  }
}

TEST_P(DeviceFailure, a_little_room_is_enough_for_what_needs_little) {
  void* const stream = gpu_.make_stream();
  for (const std::uint64_t room :
       {std::uint64_t{100}, std::uint64_t{2000}, elements * 8, elements * 8 + 100}) {
    image_.clear();
    gpu_.leave(room);
    start();
    ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
    commit_four_beside(stream);
    EXPECT_EQ(after_crash(), words_of(4)) << room;
    pool_.reset();
  }
  gpu_.leave_enough();
}

TEST_P(DeviceFailure, a_pool_that_can_not_be_registered_is_saved_through_the_host) {
  gpu_.set_no_registering(true);
  start();
  void* const stream = gpu_.make_stream();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  commit_four_beside(stream);
  const Status verified =
      verify_and_copy(pool_->device(), array_->entry(), geometry_.block_bytes, nullptr, nullptr);
  EXPECT_TRUE(verified.ok()) << verified.message();
  crash();
  start();
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer_, elements), words_of(4));
  EXPECT_EQ(after_crash(), words_of(4));
  gpu_.set_no_registering(false);
}

TEST_P(DeviceFailure, a_restart_registers_the_copy_that_it_reads_and_commits_the_others) {
  if (gpu_.is_hip()) GTEST_SKIP() << "without kernels commits pass through the host";
  start();
  EXPECT_EQ(registered_copies(elements * 8), 1U);
  for (std::int64_t version = 1; version <= 4; ++version) commit(version);
  EXPECT_EQ(registered_copies(elements * 8), 2U);
  for (const std::int64_t version : {4, 5}) {  // of one copy and of the other
    crash();
    EXPECT_EQ(gpu_.held("registered_bytes"), 0U);
    start();
    EXPECT_EQ(gpu_.read<std::int64_t>(buffer_, elements), words_of(version));
    EXPECT_EQ(registered_copies(elements * 8), 1U);
    commit(version + 1);
    EXPECT_EQ(registered_copies(elements * 8), 2U);
  }
}

TEST_P(DeviceFailure, a_copy_that_is_refused_later_is_saved_through_the_host) {
  void* const stream = gpu_.make_stream();
  for (const bool has_room : {true, false}) {
    image_.clear();
    start();
    commit(1);
    crash();
    if (!has_room) gpu_.leave(100);
    start();
    ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
    gpu_.set_no_registering(true);
    commit_four_beside(stream);
    EXPECT_EQ(registered_copies(elements * 8), 1U);
    gpu_.set_no_registering(false);
    gpu_.leave_enough();
    EXPECT_EQ(after_crash(), words_of(4)) << has_room;
    start();  // on the GPU, which reads what the host has stored
    EXPECT_EQ(gpu_.read<std::int64_t>(buffer_, elements), words_of(4)) << has_room;
    pool_.reset();
  }
}

// Without checksums nothing but a snapshot needs room.
TEST_P(DeviceFailure, a_copy_that_is_refused_later_is_taken_before_the_stream_goes_on) {
  if (GetParam() == ArrayMode::log) GTEST_SKIP() << "log mode needs checksums";
  ArrayShape plain = shape_;
  plain.checksums = false;
  gpu_.leave(100);
  DevicePoolTest::start(plain, buffer_);
  void* const stream = gpu_.make_stream();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  gpu_.set_no_registering(true);
  commit_four_beside(stream);
  gpu_.set_no_registering(false);
  gpu_.leave_enough();
  EXPECT_EQ(DevicePoolTest::after_crash(plain), words_of(4));
}

// It can't be that, but nothing would say so.
TEST_P(DeviceFailure, a_kernel_that_does_nothing_loses_no_change) {
  for (const char* const kernel : {"perdure_page_sums", "perdure_list_changed"}) {
    for (const std::int64_t from : {1, 2, 3, 4}) {
      image_.clear();
      start();
      std::int64_t last = 0;
      for (std::int64_t version = 1; version <= 6; ++version) {
        gpu_.skip(version >= from ? kernel : nullptr);
        gpu_.write(buffer_, words_of(version));
        if (pool_->commit().ok()) last = version;
      }
      gpu_.skip(nullptr);
      EXPECT_GT(last, 0);
      EXPECT_EQ(after_crash(), words_of(last)) << kernel << " from " << from;
      pool_.reset();
    }
  }
}

TEST_P(DeviceFailure, kernels_that_do_nothing_from_the_start_are_not_used) {
  for (const char* const kernel :
       {"perdure_page_sums", "perdure_block_sums", "perdure_list_changed", "perdure_store"}) {
    image_.clear();
    gpu_.skip(kernel);
    start();
    for (std::int64_t version = 1; version <= 4; ++version) commit(version);
    EXPECT_EQ(after_crash(), words_of(4)) << kernel;
    pool_.reset();
  }
  gpu_.skip(nullptr);
}

// Neither the new size nor the old one may have its tables then.
TEST_P(DeviceFailure, a_size_for_which_the_driver_has_no_memory_changes_nothing_or_is_right) {
  bool all_passed = false;
  for (std::uint64_t call = 1; !all_passed; ++call) {
    image_.clear();
    start();
    commit(1);
    commit(2);
    const std::uint64_t calls = gpu_.calls("cuMemAlloc_v2");
    gpu_.fail("cuMemAlloc_v2", call, unknown_error);
    (void)pool_->resize_array(*array_, {elements / 2}, buffer_);
    all_passed = gpu_.calls("cuMemAlloc_v2") - calls < call;
    gpu_.fail(nullptr, 0, 0);
    const Status back = pool_->resize_array(*array_, {elements}, buffer_);
    ASSERT_TRUE(back.ok()) << back.message();
    commit(3);
    commit(4);
    EXPECT_EQ(after_crash(), words_of(4)) << call;
    pool_.reset();
  }
}

TEST_P(DeviceFailure, a_size_while_a_stream_is_captured_spoils_nothing) {
  start();
  commit(1);
  void* const stream = gpu_.make_stream();
  void* graph = nullptr;
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 0));
  EXPECT_TRUE(pool_->resize_array(*array_, {elements / 2}, buffer_).ok());
  EXPECT_TRUE(pool_->resize_array(*array_, {elements}, buffer_).ok());
  EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  commit(2);
  EXPECT_EQ(after_crash(), words_of(2));
}

TEST_P(DeviceFailure, a_context_that_was_reset_fails_commits_and_leaves_the_version) {
  start();
  commit(1);
  FakeGpu::check(gpu_.call<int(int)>("cuDevicePrimaryCtxReset_v2")(0));
  EXPECT_FALSE(pool_->commit().ok());
  buffer_ = gpu_.allocate(elements * 8);
  EXPECT_FALSE(pool_->commit().ok());
  EXPECT_FALSE(pool_->commit_begin().ok());
  EXPECT_FALSE(pool_->commit_wait().ok());
  EXPECT_FALSE(pool_->restore(1).ok());
  crash();
  EXPECT_EQ(gpu_.held("registrations"), 0U);
  start();
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer_, elements), words_of(1));
  commit(2);
  EXPECT_EQ(after_crash(), words_of(2));
}

TEST_P(DeviceFailure, a_capture_that_begins_during_a_commit_is_not_spoilt) {
  start();
  commit(1);
  void* const stream = gpu_.make_stream();
  gpu_.write(buffer_, words_of(2));
  ASSERT_TRUE(pool_->commit_begin().ok());
  void* graph = nullptr;
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 0));
  EXPECT_TRUE(pool_->commit_wait().ok());
  EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  EXPECT_EQ(after_crash(), words_of(2));
}

TEST_P(DeviceFailure, a_close_while_a_stream_is_captured_spoils_nothing) {
  const std::uint64_t bytes = gpu_.held("device_bytes");
  void* const stream = gpu_.make_stream();
  const std::uint64_t streams = gpu_.held("streams");
  start();
  commit(1);
  void* graph = nullptr;
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 0));
  crash();  // which closes the pool
  EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  EXPECT_EQ(gpu_.held("device_bytes"), bytes);
  EXPECT_EQ(gpu_.held("registrations"), 0U);
  EXPECT_EQ(gpu_.held("events"), 0U);
  EXPECT_EQ(gpu_.held("streams"), streams);
  gpu_.free(gpu_.allocate(4096));
  start();
  EXPECT_EQ(after_crash(), words_of(1));
}

TEST_P(DeviceFailure, a_pool_that_is_opened_while_a_stream_is_captured_spoils_nothing) {
  void* const stream = gpu_.make_stream();
  void* const another = gpu_.make_stream();
  open();
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 0));
  const auto opened = open_array(buffer_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  array_ = opened.value();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(another)).ok());
  ASSERT_TRUE(pool_->restart().ok());
  void* graph = nullptr;
  EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  commit(1);
  EXPECT_EQ(after_crash(), words_of(1));
}

TEST_P(DeviceFailure, kernels_store_to_no_memory_that_they_reach_at_another_address) {
  gpu_.set_other_addresses(true);
  start();
  for (std::int64_t version = 1; version <= 4; ++version) commit(version);
  EXPECT_EQ(after_crash(), words_of(4));
  gpu_.set_other_addresses(false);
}

TEST_P(DeviceFailure, memory_of_no_named_context_is_that_of_its_device) {
  gpu_.set_null_context(true);
  start();
  for (std::int64_t version = 1; version <= 3; ++version) commit(version);
  EXPECT_EQ(after_crash(), words_of(3));
  gpu_.set_null_context(false);
}

TEST_P(DeviceFailure, arrays_of_the_host_ask_the_driver_nothing_in_a_commit) {
  open();
  ArrayOptions options;
  options.of_program = true;
  VersionedArray* const array = PoolTest::array("u", shape(ArrayMode::copy, elements), options);
  ASSERT_TRUE(pool_->restart().ok());
  words(array)[5] = 5;
  const std::uint64_t calls = gpu_.calls();
  ASSERT_TRUE(pool_->commit().ok());
  (void)pool_->status();
  EXPECT_EQ(gpu_.calls(), calls);
}

}  // namespace
}  // namespace perdure
