// SPDX-License-Identifier: BSD-3-Clause
//
// What a twin array is given from memory of a GPU by write(), on a driver that needs none.
// ctest: LABELS truth
#include <chrono>
#include <functional>
#include <thread>

#include "pool/testing/device_fixture.hpp"

namespace perdure {
namespace {

// Of two tensors, the second of which begins within a block.
constexpr std::uint64_t first_elements = 20'000;
constexpr std::uint64_t elements = first_elements + 9'001;
constexpr int unknown_error = 999;

class DeviceWrites : public DevicePoolTest {
 protected:
  void start() { DevicePoolTest::start(shape_, nullptr); }
  void name_stream() { ASSERT_TRUE(pool_->set_stream(gpu_.named(stream_)).ok()); }
  // What the stream leaves in both is to be the version; then it goes on to store something else.
  Status write(const Words& contents) {
    gpu_.store(one_, contents.data(), first_elements * 8, stream_);
    gpu_.store(other_, contents.data() + first_elements, (elements - first_elements) * 8, stream_);
    Status written = array_->write(0, first_elements * 8, one_);
    if (written.ok()) {
      written = array_->write(first_elements * 8, (elements - first_elements) * 8, other_);
    }
    gpu_.store(one_, later_.data(), first_elements * 8, stream_);
    gpu_.store(other_, later_.data(), (elements - first_elements) * 8, stream_);
    return written;
  }
  Result<std::uint64_t> commit(bool in_background) {
    if (!in_background) return pool_->commit();
    PERDURE_TRY(pool_->commit_begin());
    return pool_->commit_wait();
  }
  void commit_version(std::int64_t version, bool in_background = true) {
    const Words contents = words_of(version, elements);
    const Status written = write(contents);
    ASSERT_TRUE(written.ok()) << written.message();
    const auto committed = commit(in_background);
    ASSERT_TRUE(committed.ok()) << committed.status().message();
    gpu_.synchronise(stream_);
  }
  Words after_crash() { return DevicePoolTest::after_crash(shape_); }
  // Nothing of the accelerator is to be made, or tried, any more.
  void be_ready() {
    name_stream();
    ASSERT_TRUE(pool_->write(*array_, 0, 0, one_).ok());
  }
  Status write_all(const void* source) { return pool_->write(*array_, 0, elements * 8, source); }
  // No stream does anything before `call` has returned, or waits.
  void while_held(const std::function<void()>& call) const {
    gpu_.hold();
    std::thread later([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gpu_.go_on();
    });
    call();
    later.join();
  }

  const ArrayShape shape_ = shape(ArrayMode::twin, elements);
  void* stream_ = gpu_.make_stream();
  std::byte* one_ = gpu_.allocate(first_elements * 8);
  std::byte* other_ = gpu_.allocate((elements - first_elements) * 8);
  const Words later_ = words_of(-1, elements);
};

TEST_F(DeviceWrites, a_version_has_what_the_stream_left_and_nothing_of_later) {
  start();
  name_stream();
  for (std::int64_t version = 1; version <= 6; ++version) {
    commit_version(version, version % 2 == 0);
  }
  EXPECT_EQ(after_crash(), words_of(6, elements));
  name_stream();
  commit_version(7);
  EXPECT_EQ(after_crash(), words_of(7, elements));
}

TEST_F(DeviceWrites, each_copy_is_registered_once_and_given_back) {
  const std::uint64_t held = gpu_.held("registrations");
  const std::uint64_t events = gpu_.held("events");
  start();
  name_stream();
  for (std::int64_t version = 1; version <= 5; ++version) {
    commit_version(version);
    EXPECT_EQ(gpu_.held("registrations"), held + (version == 1 ? 1 : 2));
  }
  pool_.reset();
  EXPECT_EQ(gpu_.held("registrations"), held);
  EXPECT_EQ(gpu_.held("events"), events);
}

// As a restart that reads it by copies of the program's own.
TEST_F(DeviceWrites, a_write_without_bytes_has_the_copy_of_the_version_registered) {
  start();
  name_stream();
  commit_version(1);
  commit_version(2);
  crash();
  start();
  name_stream();
  ASSERT_TRUE(array_->write(0, 0, one_).ok());
  EXPECT_EQ(registered_copies(elements * 8), 1U);
  std::byte* const at = medium_->base() + array_->copy_offset(array_->entry().copy);
  EXPECT_EQ(gpu_.call<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(at, 4096, 0),
            712);  // it is registered already
}

TEST_F(DeviceWrites, a_copy_that_is_refused_later_is_stored_to_through_the_host) {
  start();
  name_stream();
  commit_version(1);
  gpu_.set_no_registering(true);
  for (std::int64_t version = 2; version <= 5; ++version) {
    commit_version(version, version % 2 == 0);
  }
  EXPECT_EQ(gpu_.held("registrations"), 1U);
  gpu_.set_no_registering(false);
  EXPECT_EQ(after_crash(), words_of(5, elements));
}

TEST_F(DeviceWrites, where_nothing_can_be_registered_all_passes_through_the_host) {
  const std::uint64_t held = gpu_.held("registrations");
  gpu_.set_no_registering(true);
  start();
  name_stream();
  for (std::int64_t version = 1; version <= 3; ++version) commit_version(version);
  EXPECT_EQ(gpu_.held("registrations"), held);
  EXPECT_EQ(after_crash(), words_of(3, elements));
  pool_.reset();
  gpu_.set_no_registering(false);
}

TEST_F(DeviceWrites, memory_of_the_host_is_stored_as_ever) {
  start();
  const Words contents = words_of(1, elements);
  const std::uint64_t calls = gpu_.calls();
  ASSERT_TRUE(array_->write(0, elements * 8, contents.data()).ok());
  EXPECT_EQ(gpu_.calls(), calls);  // nobody has named a stream
  ASSERT_TRUE(commit(false).ok());
  name_stream();
  const Words next = words_of(2, elements);
  ASSERT_TRUE(array_->write(0, elements * 8, next.data()).ok());
  ASSERT_TRUE(commit(false).ok());
  EXPECT_EQ(after_crash(), next);
}

TEST_F(DeviceWrites, a_commit_of_which_any_call_fails_leaves_the_version_before) {
  for (const bool in_background : {false, true}) {
    std::uint64_t failed = 0;
    bool all_passed = false;
    for (std::uint64_t call = 1; !all_passed; ++call) {
      image_.clear();
      start();
      name_stream();
      commit_version(1);
      commit_version(2);
      const Words contents = words_of(3, elements);
      gpu_.write(one_, Words(contents.begin(), contents.begin() + first_elements));
      gpu_.write(other_, Words(contents.begin() + first_elements, contents.end()));
      gpu_.fail(nullptr, call, unknown_error);
      const std::uint64_t calls = gpu_.calls();
      Status status = array_->write(0, first_elements * 8, one_);
      if (status.ok()) {
        status = array_->write(first_elements * 8, (elements - first_elements) * 8, other_);
      }
      if (status.ok()) status = commit(in_background).status();
      all_passed = gpu_.calls() - calls < call;
      gpu_.fail(nullptr, 0, 0);
      failed += status.ok() ? 0U : 1U;
      EXPECT_EQ(pool_->status().version, status.ok() ? 3U : 2U) << call;
      if (call % 2 == 0) {
        EXPECT_EQ(after_crash(), words_of(status.ok() ? 3 : 2, elements)) << call;
        name_stream();
      }
      commit_version(4);
      EXPECT_EQ(after_crash(), words_of(4, elements)) << call;
      pool_.reset();
    }
    EXPECT_GE(failed, 12U);
    EXPECT_EQ(gpu_.held("registrations"), 0U);
  }
}

TEST_F(DeviceWrites, a_context_that_is_lost_under_a_transfer_fails_the_commit) {
  start();
  name_stream();
  commit_version(1);
  ASSERT_TRUE(write(words_of(2, elements)).ok());
  ASSERT_TRUE(pool_->commit_begin().ok());
  (void)pool_->commit_wait();
  gpu_.synchronise(stream_);
  ASSERT_TRUE(array_->write(0, first_elements * 8, one_).ok());
  gpu_.break_context();
  EXPECT_FALSE(pool_->commit().ok());
  EXPECT_EQ(after_crash(), words_of(2, elements));
}

TEST_F(DeviceWrites, nothing_is_stored_any_more_after_a_restore_or_the_close) {
  start();
  name_stream();
  commit_version(1);
  commit_version(2);
  ASSERT_TRUE(write(words_of(3, elements)).ok());
  ASSERT_TRUE(pool_->restore(2).ok());
  gpu_.synchronise(stream_);
  EXPECT_EQ(after_crash(), words_of(2, elements));
  name_stream();
  ASSERT_TRUE(write(words_of(4, elements)).ok());
  pool_.reset();  // which unmaps
  gpu_.synchronise(stream_);
  EXPECT_EQ(gpu_.held("registrations"), 0U);
}

TEST_F(DeviceWrites, what_the_processor_can_store_to_is_read_when_the_call_returns) {
  std::byte* const pinned = gpu_.allocate_pinned(elements * 8);
  std::byte* const managed = gpu_.allocate_managed(elements * 8);
  std::vector<std::byte> own(elements * 8 + 8192);
  auto* const registered = own.data() + 4096 - FakeGpu::address(own.data()) % 4096;
  FakeGpu::check(gpu_.call<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(
      registered, elements * 8, 0));
  start();
  be_ready();
  std::int64_t version = 0;
  for (std::byte* const source : {pinned, managed, registered}) {
    const Words contents = words_of(++version, elements);
    std::memcpy(source, contents.data(), elements * 8);
    while_held([&] {
      ASSERT_TRUE(write_all(source).ok());
      std::memcpy(source, later_.data(), elements * 8);
    });
    ASSERT_TRUE(commit(true).ok());
    EXPECT_EQ(after_crash(), contents);
    be_ready();
  }
  FakeGpu::check(gpu_.call<int(void*)>("cuMemHostUnregister")(registered));
}

TEST_F(DeviceWrites, the_host_goes_on_before_what_only_the_gpu_has_was_read) {
  start();
  be_ready();
  gpu_.hold();
  const Status written = write(words_of(2, elements));
  gpu_.go_on();
  ASSERT_TRUE(written.ok());
  ASSERT_TRUE(commit(true).ok());
  EXPECT_EQ(after_crash(), words_of(2, elements));
}

// Of the host and the GPU, in either order: the last one is the version's.
TEST_F(DeviceWrites, stores_to_the_same_elements_end_as_the_program_has_made_them) {
  start();
  const Words of_host = words_of(8, elements);
  const Words of_gpu = words_of(9, first_elements);
  for (const bool host_is_last : {true, false}) {
    be_ready();
    Words expected = of_host;
    if (!host_is_last) std::copy(of_gpu.begin(), of_gpu.end(), expected.begin());
    gpu_.write(one_, of_gpu);
    while_held([&] {
      const Status before = host_is_last ? Status::success() : write_all(of_host.data());
      ASSERT_TRUE(before.ok());
      EXPECT_TRUE(pool_->write(*array_, 0, first_elements * 8, one_).ok());
      const Status after = host_is_last ? write_all(of_host.data()) : Status::success();
      ASSERT_TRUE(after.ok());
    });
    ASSERT_TRUE(commit(true).ok());
    EXPECT_EQ(after_crash(), expected) << host_is_last;
  }
}

TEST_F(DeviceWrites, a_part_that_no_transfer_is_under_way_to_is_stored_at_once) {
  start();
  be_ready();
  const Words contents = words_of(1, elements);
  gpu_.write(one_, Words(contents.begin(), contents.begin() + first_elements));
  gpu_.hold();
  EXPECT_TRUE(pool_->write(*array_, 0, first_elements * 8, one_).ok());
  EXPECT_TRUE(pool_
                  ->write(*array_, first_elements * 8, (elements - first_elements) * 8,
                          contents.data() + first_elements)
                  .ok());
  gpu_.go_on();
  ASSERT_TRUE(commit(true).ok());
  EXPECT_EQ(after_crash(), contents);
}

TEST_F(DeviceWrites, the_last_of_two_gpus_is_the_version_s) {
  FakeGpu second(1);
  void* const its_stream = second.make_stream();
  std::byte* const its_own = second.allocate(first_elements * 8);
  start();
  be_ready();
  ASSERT_TRUE(pool_->set_stream(second.named(its_stream)).ok());
  ASSERT_TRUE(pool_->write(*array_, 0, 0, its_own).ok());
  for (std::int64_t version = 1; version <= 20; ++version) {
    const Words first = words_of(-version, first_elements);
    const Words last = words_of(version, first_elements);
    gpu_.write(one_, first);
    second.write(its_own, last);
    while_held([&] {
      name_stream();
      ASSERT_TRUE(pool_->write(*array_, 0, first_elements * 8, one_).ok());
      ASSERT_TRUE(pool_->set_stream(second.named(its_stream)).ok());
      ASSERT_TRUE(pool_->write(*array_, 0, first_elements * 8, its_own).ok());
    });
    ASSERT_TRUE(commit(true).ok());
    const auto* const found = reinterpret_cast<const std::int64_t*>(array_->consistent());
    ASSERT_EQ((Words{found, found + first_elements}), last) << version;
  }
  pool_.reset();
}

TEST_F(DeviceWrites, the_processor_may_store_to_the_working_copy_after_before_write) {
  start();
  be_ready();
  const Words contents = words_of(1, elements);
  gpu_.write(one_, Words(contents.begin(), contents.begin() + first_elements));
  while_held([&] {
    ASSERT_TRUE(pool_->write(*array_, 0, first_elements * 8, one_).ok());
    ASSERT_TRUE(pool_->before_write(*array_).ok());
    std::memcpy(array_->working(), contents.data(), elements * 8);
    words(array_)[7] = 77;
  });
  ASSERT_TRUE(commit(true).ok());
  Words expected = contents;
  expected[7] = 77;
  EXPECT_EQ(after_crash(), expected);
}

TEST_F(DeviceWrites, a_transfer_that_failed_fails_the_commit_whoever_waited_for_it) {
  start();
  be_ready();
  commit_version(1);
  commit_version(2);
  const Words contents = words_of(3, elements);
  ASSERT_TRUE(pool_->write(*array_, 0, first_elements * 8, one_).ok());
  gpu_.fail("cuEventSynchronize", 1, unknown_error);
  EXPECT_FALSE(write_all(contents.data()).ok());
  gpu_.fail(nullptr, 0, 0);
  EXPECT_FALSE(commit(false).ok());
  EXPECT_EQ(pool_->status().version, 2U);
  ASSERT_TRUE(write_all(contents.data()).ok());
  ASSERT_TRUE(commit(false).ok());
  EXPECT_EQ(after_crash(), contents);
}

TEST_F(DeviceWrites, an_array_that_a_commit_has_takes_no_elements) {
  start();
  name_stream();
  const Words contents = words_of(1, elements);
  ASSERT_TRUE(write_all(contents.data()).ok());
  ASSERT_TRUE(pool_->commit_begin().ok());
  EXPECT_EQ(write_all(later_.data()).code(), Code::wrong_state);
  EXPECT_EQ(pool_->write(*array_, 0, first_elements * 8, one_).code(), Code::wrong_state);
  EXPECT_EQ(pool_->before_write(*array_).code(), Code::wrong_state);
  EXPECT_TRUE(pool_->write(*array_, 0, 0, one_).ok());  // which only registers the mapping
  ASSERT_TRUE(pool_->commit_wait().ok());
  EXPECT_EQ(after_crash(), contents);
  name_stream();
  commit_version(2);
}

// Of an array that is not the commit's: both pass through the same places in the host's memory.
TEST_F(DeviceWrites, elements_from_a_gpu_wait_for_what_the_saver_has_of_it) {
  constexpr std::uint64_t many = 500'000;  // which take their time
  device_max_ = 32 << 20;
  std::byte* const source = gpu_.allocate(many * 8);
  std::byte* const buffer = gpu_.allocate(many * 8);
  gpu_.set_no_registering(true);
  const ArrayShape other = shape(ArrayMode::copy, many);
  for (std::int64_t version = 1; version <= 4; ++version) {
    image_.clear();
    open();
    ArrayOptions options;
    options.buffer = buffer;
    options.of_program = true;
    ASSERT_TRUE(pool_->open_array("copied", other, options).ok());
    VersionedArray* const room = PoolTest::array("room", shape(ArrayMode::twin, many), {});
    ASSERT_TRUE(pool_->restart().ok());
    ASSERT_TRUE(pool_->close_array(room, true).ok());  // for which nobody waits
    name_stream();
    const Words copied = words_of(-version, many);
    const Words contents = words_of(version, many);
    gpu_.write(buffer, copied);
    gpu_.write(source, contents);
    VersionedArray* late = nullptr;
    while_held([&] {
      ASSERT_TRUE(pool_->commit_begin().ok());
      const auto opened = open_array(shape(ArrayMode::twin, many), nullptr);
      ASSERT_TRUE(opened.ok());
      late = opened.value();
      ASSERT_TRUE(pool_->write(*late, 0, many * 8, source).ok());
    });
    ASSERT_TRUE(pool_->commit_wait().ok());
    ASSERT_TRUE(pool_->commit().ok());
    crash();
    open();
    VersionedArray* const kept = PoolTest::array("copied", other, {});
    VersionedArray* const twin = PoolTest::array("u", shape(ArrayMode::twin, many), {});
    ASSERT_TRUE(pool_->restart().ok());
    ASSERT_EQ((Words{words(kept), words(kept) + many}), copied) << version;
    const auto* const found = reinterpret_cast<const std::int64_t*>(twin->consistent());
    ASSERT_EQ((Words{found, found + many}), contents) << version;
    pool_.reset();
  }
  gpu_.set_no_registering(false);
}

TEST_F(DeviceWrites, what_an_array_gets_in_its_place_is_registered_too) {
  start();
  const std::uint64_t first_offset = array_->entry().first_offset;
  ASSERT_TRUE(pool_->resize_array(*array_, {elements - 1200}, nullptr).ok());
  be_ready();
  ASSERT_TRUE(pool_->resize_array(*array_, {elements}, nullptr).ok());
  commit_version(1);
  commit_version(2);
  ASSERT_EQ(array_->entry().first_offset, first_offset);
  std::byte* const last =
      medium_->base() + array_->copy_offset(array_->copies() - 1) + elements * 8 - 8;
  std::byte* const page = last - FakeGpu::address(last) % 4096;
  EXPECT_EQ(gpu_.call<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(page, 4096, 0),
            712);
}

TEST_F(DeviceWrites, a_close_while_a_stream_is_captured_spoils_nothing) {
  void* const captured = gpu_.make_stream();
  for (const bool registered : {true, false}) {
    gpu_.set_no_registering(!registered);
    image_.clear();
    start();
    name_stream();
    commit_version(1);
    FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(captured, 0));
    pool_.reset();
    void* graph = nullptr;
    EXPECT_EQ(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(captured, &graph), 0);
    EXPECT_EQ(gpu_.held("registrations"), 0U);
  }
  gpu_.set_no_registering(false);
  gpu_.free(gpu_.allocate(4096));
}

TEST_F(DeviceWrites, a_stream_that_is_captured_is_refused_before_anything_is_stored) {
  start();
  name_stream();
  commit_version(1);
  ASSERT_EQ(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream_, 0), 0);
  EXPECT_EQ(array_->write(0, first_elements * 8, one_).code(), Code::wrong_state);
  void* graph = nullptr;
  (void)gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph);
  commit_version(2);
  EXPECT_EQ(after_crash(), words_of(2, elements));
}

}  // namespace
}  // namespace perdure
