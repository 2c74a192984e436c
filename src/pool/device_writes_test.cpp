// SPDX-License-Identifier: BSD-3-Clause
//
// What a twin array is given from memory of a GPU by write(), on a driver that needs none.
// ctest: LABELS truth
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

TEST_F(DeviceWrites, the_mapping_is_registered_once_and_given_back) {
  const std::uint64_t held = gpu_.held("registrations");
  const std::uint64_t events = gpu_.held("events");
  start();
  name_stream();
  for (std::int64_t version = 1; version <= 5; ++version) {
    commit_version(version);
    EXPECT_EQ(gpu_.held("registrations"), held + 1);
  }
  pool_.reset();
  EXPECT_EQ(gpu_.held("registrations"), held);
  EXPECT_EQ(gpu_.held("events"), events);
}

TEST_F(DeviceWrites, a_write_without_bytes_has_both_copies_registered) {
  start();
  name_stream();
  ASSERT_TRUE(array_->write(0, 0, one_).ok());
  for (const std::uint32_t copy : {0U, 1U}) {
    std::byte* const at = medium_->base() + array_->copy_offset(copy);
    EXPECT_EQ(gpu_.call<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(at, 4096, 0),
              712)
        << copy;  // it is registered already
  }
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
