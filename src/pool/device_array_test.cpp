// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays whose buffer is memory of a GPU, on a driver that needs none.
// ctest: LONG 600
#include <list>
#include <map>
#include <random>

#include "device/accelerators.hpp"
#include "pool/copy_check.hpp"
#include "pool/testing/device_fixture.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_words = (64U << 10U) / sizeof(std::int64_t);
constexpr std::uint64_t page_words = 4096 / sizeof(std::int64_t);
// Not a whole number of blocks, or pages.
constexpr std::uint64_t elements = 3 * block_words + 5 * page_words + 77;

using perdure::words_of;
Words words_of(std::int64_t version) {
  return words_of(version, elements);
}

class DeviceArrayTest : public DevicePoolTest {
 protected:
  std::uint64_t start(ArrayMode mode, std::byte* buffer, std::uint64_t count = elements,
                      bool checksums = true) {
    return DevicePoolTest::start(shape(mode, count, checksums), buffer);
  }
  VersionedArray* array_of(ArrayMode mode, std::byte* buffer, std::uint64_t count = elements,
                           bool checksums = true) {
    const auto opened = open_array(shape(mode, count, checksums), buffer);
    status_ = opened.ok() ? Status::success() : opened.status();
    return opened.ok() ? opened.value() : nullptr;
  }
  std::uint64_t commit() {
    const auto version = pool_->commit();
    EXPECT_TRUE(version.ok()) << version.status().message();
    return version.ok() ? version.value() : 0;
  }
  Words after_crash(ArrayMode mode, std::uint64_t count = elements, bool checksums = true) {
    return DevicePoolTest::after_crash(shape(mode, count, checksums));
  }
  // After all is saved.
  void fail_next_commit() {
    medium_->failing_fence = medium_->counters().fence_calls + 1;
    EXPECT_FALSE(pool_->commit().ok());
    medium_->failing_fence = 0;
  }
  std::uint64_t saved_bytes() {
    const std::uint64_t before = pool_->status().committed_bytes;
    commit();
    return pool_->status().committed_bytes - before;
  }
};

struct Case {
  ArrayMode mode;
  bool checksums;
  const char* name;
};
class ModesOnDevice : public DeviceArrayTest, public testing::WithParamInterface<Case> {};

INSTANTIATE_TEST_SUITE_P(All, ModesOnDevice,
                         testing::Values(Case{ArrayMode::copy, true, "copy"},
                                         Case{ArrayMode::copy, false, "copy_without_checksums"},
                                         Case{ArrayMode::log, true, "log"}),
                         [](const auto& each) { return each.param.name; });

TEST_P(ModesOnDevice, versions_are_what_the_buffer_was) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  EXPECT_EQ(start(mode, buffer, elements, checksums), 0U);
  for (std::int64_t version = 1; version <= 5; ++version) {
    gpu_.write(buffer, words_of(version));
    EXPECT_EQ(commit(), static_cast<std::uint64_t>(version));
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(5));
}

TEST_P(ModesOnDevice, a_restart_fills_the_buffer) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  gpu_.write(buffer, words_of(1));
  commit();
  crash();
  std::byte* const other = gpu_.allocate(elements * 8);
  EXPECT_EQ(start(mode, other, elements, checksums), 1U);
  EXPECT_EQ(gpu_.read<std::int64_t>(other, elements), words_of(1));
  gpu_.write(other, words_of(2));
  commit();
  gpu_.write(other, words_of(3));
  ASSERT_TRUE(pool_->restore(2).ok());
  EXPECT_EQ(gpu_.read<std::int64_t>(other, elements), words_of(2));
  gpu_.write(other, words_of(4));
  commit();
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(4));
}

TEST_P(ModesOnDevice, what_the_host_had_committed_goes_on_there) {
  const auto [mode, checksums, name] = GetParam();
  start(mode, nullptr, elements, checksums);
  std::ranges::copy(words_of(1), words(array_));
  commit();
  crash();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  EXPECT_EQ(start(mode, buffer, elements, checksums), 1U);
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer, elements), words_of(1));
  for (std::int64_t version = 2; version <= 4; ++version) {
    gpu_.write(buffer, words_of(version));
    commit();
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(4));
}

TEST_P(ModesOnDevice, a_commit_in_the_background_takes_what_was_there) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  for (std::int64_t version = 1; version <= 4; ++version) {
    gpu_.write(buffer, words_of(version));
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->before_write(*array_).ok());
    gpu_.write(buffer, words_of(-1));
    ASSERT_TRUE(pool_->commit_wait().ok());
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(4));
}

TEST_P(ModesOnDevice, without_a_stream_all_that_the_gpu_was_asked_for_is_taken) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  void* const stream = gpu_.make_stream();
  for (std::int64_t version = 1; version <= 6; ++version) {
    const Words contents = words_of(version);
    gpu_.store(buffer, contents.data(), elements * 8, stream);
    commit();
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(6));
}

TEST_P(ModesOnDevice, the_stream_goes_on_when_the_commit_has_what_it_had_done) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  void* const stream = gpu_.make_stream();
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  const Words later = words_of(-1);
  for (std::int64_t version = 1; version <= 20; ++version) {
    const Words contents = words_of(version);
    gpu_.store(buffer, contents.data(), elements * 8, stream);
    ASSERT_TRUE(pool_->commit_begin().ok());
    gpu_.store(buffer, later.data(), elements * 8, stream);
    ASSERT_TRUE(pool_->commit_wait().ok());
    const std::byte* const copy =
        medium_->base() + array_->entry().copy_offset(array_->consistent_copy());
    EXPECT_EQ(std::memcmp(copy, contents.data(), elements * 8), 0) << version;
    gpu_.synchronise(stream);
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(20));
}

TEST_P(ModesOnDevice, sizes_follow_the_program) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  gpu_.write(buffer, words_of(1));
  commit();
  std::uint64_t last = 0;
  for (const std::uint64_t count : {2 * elements, elements / 2, std::uint64_t{100}, 3 * elements}) {
    std::byte* const other = gpu_.allocate(count * 8);
    const auto contents = words_of(static_cast<std::int64_t>(count), count);
    gpu_.write(other, contents);
    const Status resized = pool_->resize_array(*array_, {count}, other);
    ASSERT_TRUE(resized.ok()) << resized.message();
    commit();
    gpu_.free(std::exchange(buffer, other));
    auto changed = contents;
    changed[count / 2]++;
    gpu_.write(other, changed);
    commit();
    commit();
    EXPECT_EQ(gpu_.read<std::int64_t>(other, count), changed);
    last = count;
  }
  auto expected = words_of(static_cast<std::int64_t>(last), last);
  expected[last / 2]++;
  EXPECT_EQ(after_crash(mode, last, checksums), expected);
}

TEST_P(ModesOnDevice, an_array_of_any_size_is_whole) {
  const auto [mode, checksums, name] = GetParam();
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, page_words, page_words + 1,
                                    block_words, block_words - 1, 2 * block_words}) {
    image_.clear();
    std::byte* const buffer = gpu_.allocate(count * 8 + 8);
    start(mode, buffer, count, checksums);
    for (std::int64_t version = 1; version <= 3; ++version) {
      gpu_.write(buffer, words_of(version, count));
      commit();
    }
    EXPECT_EQ(after_crash(mode, count, checksums), words_of(3, count)) << count;
  }
}

TEST_P(ModesOnDevice, a_buffer_that_begins_anywhere_is_whole) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const memory = gpu_.allocate(elements * 8 + 64);
  start(mode, memory + 8, elements, checksums);
  for (std::int64_t version = 1; version <= 3; ++version) {
    gpu_.write(memory + 8, words_of(version));
    commit();
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(3));
}

TEST_P(ModesOnDevice, managed_and_pinned_memory_is_saved) {
  const auto [mode, checksums, name] = GetParam();
  for (std::byte* const buffer :
       {gpu_.allocate_managed(elements * 8), gpu_.allocate_pinned(elements * 8)}) {
    image_.clear();
    start(mode, buffer, elements, checksums);
    EXPECT_TRUE(array_->on_device());
    EXPECT_FALSE(array_->is_tracked());
    for (std::int64_t version = 1; version <= 5; ++version) {
      gpu_.write(buffer, words_of(version));
      commit();
    }
    EXPECT_EQ(after_crash(mode, elements, checksums), words_of(5));
  }
}

TEST_P(ModesOnDevice, blocks_that_the_gpu_can_not_sum_are_summed_by_the_processor) {
  const auto [mode, checksums, name] = GetParam();
  geometry_ = pool_test_geometry;
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  for (std::int64_t version = 1; version <= 3; ++version) {
    gpu_.write(buffer, words_of(version));
    commit();
  }
  crash();
  EXPECT_EQ(start(mode, buffer, elements, checksums), 3U);
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer, elements), words_of(3));
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(3));
}

TEST_P(ModesOnDevice, new_arrays_begin_as_the_program_has_filled_them) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  gpu_.write(buffer, words_of(9));
  start(mode, buffer, elements, checksums);
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer, elements), words_of(9));
  commit();
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(9));
}

TEST_F(DeviceArrayTest, sums_are_those_of_the_format_in_both_modes) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log}) {
    image_.clear();
    std::byte* const buffer = gpu_.allocate(elements * 8);
    start(mode, buffer);
    EXPECT_EQ(array_->entry().checksum,
              mode == ArrayMode::copy ? DataChecksum::xxh3 : DataChecksum::xxh3_of_pages);
    for (std::int64_t version = 1; version <= 4; ++version) {
      gpu_.write(buffer, words_of(version / 3));
      commit();
      const Status verified = verify_and_copy(pool_->device(), array_->entry(),
                                              geometry_.block_bytes, nullptr, nullptr);
      EXPECT_TRUE(verified.ok()) << verified.message();
    }
    pool_.reset();
  }
}

TEST_P(ModesOnDevice, a_stream_that_is_named_during_a_commit_waits_for_it) {
  const auto [mode, checksums, name] = GetParam();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(mode, buffer, elements, checksums);
  void* const streams[] = {gpu_.make_stream(), gpu_.make_stream()};
  const Words later = words_of(-1);
  for (std::int64_t version = 1; version <= 20; ++version) {
    const Words contents = words_of(version);
    ASSERT_TRUE(pool_->set_stream(gpu_.named(streams[0])).ok());
    gpu_.store(buffer, contents.data(), elements * 8, streams[0]);
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->set_stream(gpu_.named(streams[1])).ok());
    gpu_.store(buffer, later.data(), elements * 8, streams[1]);
    const auto committed = pool_->commit_wait();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
    gpu_.synchronise(streams[1]);
    const auto* const copy = reinterpret_cast<const std::int64_t*>(
        pool_->device().base() + array_->copy_offset(array_->entry().copy));
    EXPECT_EQ(std::memcmp(copy, contents.data(), elements * 8), 0) << version;
  }
}

// A version may have the array in another place than where it is now.
TEST_P(ModesOnDevice, an_older_version_is_restored_from_where_it_is) {
  const auto [mode, checksums, name] = GetParam();
  constexpr std::uint64_t large = 5 * elements;
  geometry_.slots = 4;
  std::byte* const buffer = gpu_.allocate(large * 8);
  start(mode, buffer, elements, checksums);
  gpu_.write(buffer, words_of(1));
  commit();
  ASSERT_TRUE(pool_->resize_array(*array_, {large}, buffer).ok());
  gpu_.write(buffer, words_of(2, large));
  commit();
  ASSERT_TRUE(pool_->resize_array(*array_, {elements}, buffer).ok());
  gpu_.write(buffer, words_of(3));
  commit();
  const auto restored = pool_->restore(1);
  ASSERT_TRUE(restored.ok()) << restored.message();
  EXPECT_EQ(gpu_.read<std::int64_t>(buffer, elements), words_of(1));
  for (std::int64_t version = 4; version <= 6; ++version) {
    gpu_.write(buffer, words_of(version));
    commit();
  }
  EXPECT_EQ(after_crash(mode, elements, checksums), words_of(6));
}

TEST_F(DeviceArrayTest, blocks_of_any_size_pass_through_the_ring) {
  if (gpu_.is_hip()) GTEST_SKIP() << "the ring is the same, and all else goes through it";
  constexpr std::uint64_t large = (9U << 20U) / 8 + 777;
  constexpr ArrayMode modes[] = {ArrayMode::copy, ArrayMode::log};
  const Cases cases = some_cases(0, std::size(modes));
  for (std::uint64_t i = cases.first; i < std::size(modes); i += cases.step) {
    const ArrayMode mode = modes[i];
    SCOPED_TRACE(mode_name(mode));
    image_.clear();
    geometry_.block_bytes = mode == ArrayMode::copy ? 16U << 20U : 96U << 10U;
    device_max_ = 40 << 20;
    std::byte* const buffer = gpu_.allocate(large * 8);
    start(mode, buffer, large);
    gpu_.write(buffer, words_of(1, large));
    commit();
    EXPECT_TRUE(after_crash(mode, large) == words_of(1, large));
    pool_.reset();
    gpu_.free(buffer);
  }
}

TEST_F(DeviceArrayTest, log_stores_the_pages_that_changed) {
  if (gpu_.is_hip()) GTEST_SKIP() << "there are no kernels for AMD's GPUs: log saves all";
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(ArrayMode::log, buffer);
  Words now = words_of(1);
  gpu_.write(buffer, now);
  const std::uint64_t rest = elements * 8 % 4096;  // is always stored
  EXPECT_EQ(saved_bytes(), elements * 8);          // two copies of which nothing is known
  EXPECT_EQ(saved_bytes(), elements * 8);
  EXPECT_EQ(saved_bytes(), rest);
  now[3 * page_words] = 5;
  now[7 * page_words + 1] = 6;
  gpu_.write(buffer, now);
  EXPECT_EQ(saved_bytes(), 2 * 4096 + rest);
  EXPECT_EQ(saved_bytes(), 2 * 4096 + rest);  // the other copy
  now[elements - 1] = 7;
  gpu_.write(buffer, now);
  EXPECT_EQ(saved_bytes(), rest);
  EXPECT_EQ(after_crash(ArrayMode::log), now);
}

TEST_F(DeviceArrayTest, log_knows_nothing_of_a_copy_after_a_failure_or_a_restart) {
  if (gpu_.is_hip()) GTEST_SKIP() << "there are no kernels for AMD's GPUs: log saves all";
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(ArrayMode::log, buffer);
  gpu_.write(buffer, words_of(1));
  commit();
  commit();
  const std::uint64_t rest = elements * 8 % 4096;
  EXPECT_EQ(saved_bytes(), rest);
  fail_next_commit();
  EXPECT_EQ(saved_bytes(), elements * 8);
  EXPECT_EQ(saved_bytes(), rest);
  crash();
  EXPECT_EQ(start(ArrayMode::log, buffer), 5U);
  EXPECT_EQ(saved_bytes(), elements * 8);  // the copy that the version before had
  EXPECT_EQ(saved_bytes(), rest);          // the restored one was compared
}

TEST_F(DeviceArrayTest, hip_is_left_with_the_programs_device_and_without_an_error) {
  if (!gpu_.is_hip()) GTEST_SKIP() << "CUDA's driver has contexts, and keeps no errors";
  const auto get_device = gpu_.look_up<int(int*)>("hipGetDevice");
  FakeGpu other(1);
  gpu_.look_up<int(int)>("hipSetDevice")(1);
  std::vector<std::byte> host(100);
  EXPECT_EQ(kind_of(host.data()), MemoryKind::host);
  start(ArrayMode::copy, gpu_.allocate(elements * 8));  // which makes device 0 the thread's
  gpu_.look_up<int(int)>("hipSetDevice")(1);
  commit();
  int device = 0;
  get_device(&device);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(gpu_.look_up<int()>("hipPeekAtLastError")(), 0);
  pool_.reset();
}

TEST_F(DeviceArrayTest, damage_is_named) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log}) {
    image_.clear();
    std::byte* const buffer = gpu_.allocate(elements * 8);
    start(mode, buffer);
    gpu_.write(buffer, words_of(1));
    commit();
    const std::uint64_t at = array_->entry().copy_offset(array_->entry().copy);
    crash();
    for (const std::uint64_t byte : {std::uint64_t{70'000}, elements * 8 - 1}) {
      auto damaged = image_;
      damaged[at + byte] ^= std::byte{1};
      std::swap(image_, damaged);
      open();
      ASSERT_NE(array_of(mode, buffer), nullptr);
      const auto restarted = pool_->restart();
      EXPECT_EQ(restarted.status().code(), Code::damaged);
      const char* const named = byte == 70'000 ? "bytes 65536 to 131071" : "bytes 196608 to ";
      EXPECT_NE(restarted.status().message().find(named), std::string::npos)
          << restarted.status().message();
      pool_.reset();
      std::swap(image_, damaged);
    }
  }
}

TEST_F(DeviceArrayTest, arrays_on_two_gpus_are_of_one_version) {
  FakeGpu other(1);
  std::byte* const here = gpu_.allocate(elements * 8);
  std::byte* const there = other.allocate(elements * 8);
  start(ArrayMode::copy, here);
  ArrayOptions options;
  options.buffer = there;
  options.of_program = true;
  VersionedArray* const second = array("v", shape(ArrayMode::log, elements), options);
  ASSERT_NE(second, nullptr) << status_.message();
  void* const stream = other.make_stream();
  for (std::int64_t version = 1; version <= 4; ++version) {
    const Words contents = words_of(-version);
    gpu_.write(here, words_of(version));
    other.store(there, contents.data(), elements * 8, stream);
    commit();
  }
  ASSERT_TRUE(pool_->set_stream(gpu_.named(stream)).ok());
  const auto refused = pool_->commit();
  EXPECT_EQ(refused.status().code(), Code::invalid_argument) << refused.status().message();
  EXPECT_EQ(after_crash(ArrayMode::copy), words_of(4));
  options.buffer = nullptr;
  VersionedArray* const found = array("v", shape(ArrayMode::log, elements), options);
  EXPECT_EQ((Words{words(found), words(found) + elements}), words_of(-4));
  pool_.reset();
}

TEST_F(DeviceArrayTest, what_can_not_be_on_a_gpu_is_refused_with_a_sentence) {
  open();
  std::byte* const buffer = gpu_.allocate(elements * 8);
  for (const ArrayMode mode : {ArrayMode::twin, ArrayMode::flush}) {
    EXPECT_EQ(array_of(mode, buffer, elements, mode == ArrayMode::twin), nullptr);
    EXPECT_EQ(status_.code(), Code::invalid_argument) << status_.message();
    EXPECT_NE(status_.message().find("in copy mode"), std::string::npos) << status_.message();
  }
  EXPECT_EQ(array_of(ArrayMode::log, buffer, elements, false), nullptr);
  EXPECT_EQ(status_.code(), Code::unsupported) << status_.message();
  ArrayOptions options;
  options.buffer = buffer;
  options.of_program = true;
  options.compare = true;
  EXPECT_EQ(array("v", shape(ArrayMode::log, elements), options), nullptr);
  EXPECT_NE(status_.message().find("PERDURE_COMPARE"), std::string::npos) << status_.message();
  options.compare = false;
  EXPECT_EQ(array("x", shape(ArrayMode::copy, 2 * elements), options), nullptr);
  EXPECT_EQ(status_.code(), Code::invalid_argument) << status_.message();
}

// As twin would have it: two versions in the pool, and nothing but sums elsewhere.
TEST_F(DeviceArrayTest, copy_without_a_snapshot_goes_to_two_copies_in_the_pool_by_turns) {
  if (gpu_.is_hip()) GTEST_SKIP() << "nothing is transferred straight to the pool there";
  constexpr std::uint64_t large = 9 * block_words + 77;  // more than the kernels are tried on
  std::byte* const buffer = gpu_.allocate(large * 8);
  gpu_.leave(large * 8 - 8);
  start(ArrayMode::copy, buffer, large);
  EXPECT_TRUE(array_->lacks_snapshot());
  EXPECT_EQ(array_->entry().copies, 2U);
  const std::uint64_t held = gpu_.held("device_bytes");
  std::uint32_t before = array_->entry().copy;
  for (std::int64_t version = 1; version <= 5; ++version) {
    gpu_.write(buffer, words_of(version, large));
    const std::uint64_t transfers = gpu_.calls("cuMemcpyDtoHAsync_v2");
    EXPECT_EQ(saved_bytes(), large * 8);
    // All of it, and the sums; what is in a page that the other copy was registered with by itself.
    const std::uint64_t more = FakeGpu::address(medium_->base()) % 4096 == 0 ? 0 : 1;
    EXPECT_GE(gpu_.calls("cuMemcpyDtoHAsync_v2"), transfers + 2);
    EXPECT_LE(gpu_.calls("cuMemcpyDtoHAsync_v2"), transfers + 2 + more);
    const std::uint32_t now = array_->entry().copy;
    EXPECT_TRUE(version == 1 || now == 1 - before) << version;
    before = now;
    const auto* const at =
        reinterpret_cast<const std::int64_t*>(medium_->base() + array_->entry().copy_offset(now));
    EXPECT_EQ((Words{at, at + large}), words_of(version, large));
  }
  EXPECT_LT(gpu_.held("device_bytes"), held + 4096);
  gpu_.leave_enough();
  EXPECT_EQ(after_crash(ArrayMode::copy, large), words_of(5, large));
}

// What a program may do with an array, in any order, against what its versions must be.
class Walks : public ModesOnDevice {
 protected:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void begin(std::uint64_t seed) {
    image_.clear();
    random_.seed(seed);
    geometry_.slots = static_cast<std::uint32_t>(2 + draw(4));
    versions_.clear();
    newest_ = 0;
    now_ = Words(elements);
    buffer_ = gpu_.allocate(elements * 8);
    gpu_.write(buffer_, now_);
    start(GetParam().mode, buffer_, now_.size(), GetParam().checksums);
    stream_ = gpu_.make_stream();
    ASSERT_TRUE(pool_->set_stream(gpu_.named(stream_)).ok());
    sources_.clear();
  }
  void end() {
    gpu_.synchronise(stream_);
    if (newest_ != 0) {
      const Words& last = versions_[newest_];
      EXPECT_TRUE(after_crash(GetParam().mode, last.size(), GetParam().checksums) == last);
    }
    pool_.reset();
    gpu_.free(buffer_);
  }

  void change_and_store() {
    const std::uint64_t pages = now_.size() / page_words;
    for (std::uint64_t i = draw(4); i > 0; --i) {
      const bool is_last = draw(8) == 0;
      const std::uint64_t at = is_last ? now_.size() - 1 : draw(pages) * page_words + draw(512);
      now_[at] = static_cast<std::int64_t>(random_());
    }
    if (draw(6) == 0) now_ = words_of(static_cast<std::int64_t>(draw(1000)), now_.size());
    sources_.push_back(now_);
    gpu_.store(buffer_, sources_.back().data(), now_.size() * 8, stream_);
  }
  void note(const Result<std::uint64_t>& version, const Words& contents) {
    ASSERT_TRUE(version.ok()) << version.status().message();
    newest_ = version.value();
    versions_[newest_] = contents;
  }
  void commit_in_background() {
    const Words taken = now_;
    ASSERT_TRUE(pool_->commit_begin().ok());
    if (draw(3) == 0) gpu_.synchronise(stream_);
    change_and_store();
    note(pool_->commit_wait(), taken);
  }
  void commit_with_a_failing_call() {
    gpu_.fail(nullptr, 1 + draw(60), 999);
    const auto version = pool_->commit();
    gpu_.fail(nullptr, 0, 0);
    if (version.ok()) note(version, now_);
  }
  void take_an_old_version() {
    if (versions_.empty()) return;
    auto found = versions_.begin();
    std::advance(found, static_cast<std::ptrdiff_t>(draw(versions_.size())));
    if (draw(3) == 0) {
      if (pool_->delete_version(found->first).ok()) versions_.erase(found);
      return;
    }
    if (found->second.size() != now_.size()) return;
    const Status restored = pool_->restore(found->first);
    if (!restored.ok()) {
      EXPECT_EQ(restored.code(), Code::not_found) << restored.message();
      return;
    }
    now_ = found->second;
    newest_ = found->first;
    EXPECT_TRUE(gpu_.read<std::int64_t>(buffer_, now_.size()) == now_);
  }
  void resize() {
    const std::uint64_t counts[] = {elements, elements / 2, 2 * elements};
    const std::uint64_t count = counts[draw(3)];
    gpu_.synchronise(stream_);
    std::byte* const other = gpu_.allocate(count * 8);
    now_.resize(count);
    gpu_.write(other, now_);
    const Status resized = pool_->resize_array(*array_, {count}, other);
    ASSERT_TRUE(resized.ok()) << resized.message();
    gpu_.free(std::exchange(buffer_, other));
  }
  void crash_and_start() {
    if (newest_ == 0) return;
    gpu_.synchronise(stream_);
    crash();
    gpu_.free(buffer_);
    now_ = versions_[newest_];
    buffer_ = gpu_.allocate(now_.size() * 8);
    ASSERT_EQ(start(GetParam().mode, buffer_, now_.size(), GetParam().checksums), newest_);
    EXPECT_TRUE(gpu_.read<std::int64_t>(buffer_, now_.size()) == now_);
    ASSERT_TRUE(pool_->set_stream(gpu_.named(stream_)).ok());
  }
  void step() {
    change_and_store();
    const std::uint64_t what = draw(12);
    if (what < 4) note(pool_->commit(), now_);
    if (what >= 4 && what < 7) commit_in_background();
    if (what == 7) fail_next_commit();
    if (what == 8) commit_with_a_failing_call();
    if (what == 9) take_an_old_version();
    if (what == 10) resize();
    if (what == 11) crash_and_start();
  }

  std::mt19937_64 random_;
  std::map<std::uint64_t, Words> versions_;
  std::uint64_t newest_ = 0;
  Words now_;
  std::byte* buffer_ = nullptr;
  void* stream_ = nullptr;
  std::list<Words> sources_;  // what the stream reads from
};

INSTANTIATE_TEST_SUITE_P(All, Walks,
                         testing::Values(Case{ArrayMode::copy, true, "copy"},
                                         Case{ArrayMode::copy, false, "copy_without_checksums"},
                                         Case{ArrayMode::log, true, "log"}),
                         [](const auto& each) { return each.param.name; });

TEST_P(Walks, versions_are_right_whatever_was_done_before) {
  // Numbered ones, for which the device has room.
  const std::uint64_t walks = slow_tests() ? 90 : 4;
  for (std::uint64_t seed = 1; seed <= walks; ++seed) {
    SCOPED_TRACE(seed);
    begin(seed);
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      step();
    }
    if (testing::Test::HasFailure()) return;
    end();
  }
}

TEST_F(DeviceArrayTest, memory_that_was_freed_fails_the_commit) {
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(ArrayMode::copy, buffer);
  gpu_.write(buffer, words_of(1));
  commit();
  gpu_.free(buffer);
  const auto failed = pool_->commit();
  EXPECT_EQ(failed.status().code(), Code::wrong_state);
  EXPECT_NE(failed.status().message().find("was freed"), std::string::npos)
      << failed.status().message();
  EXPECT_EQ(after_crash(ArrayMode::copy), words_of(1));
}

// The driver gives the same address again.
TEST_F(DeviceArrayTest, memory_of_another_allocation_is_not_the_buffer) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log}) {
    image_.clear();
    std::byte* const buffer = gpu_.allocate(elements * 8);
    start(mode, buffer);
    gpu_.write(buffer, words_of(1));
    commit();
    gpu_.free(buffer);
    std::byte* other = gpu_.allocate(elements * 8);
    for (int i = 0; i < 1000 && other != buffer; ++i) {
      gpu_.free(other);
      other = gpu_.allocate(elements * 8);
    }
    ASSERT_EQ(other, buffer);
    gpu_.write(other, words_of(2));
    const auto failed = pool_->commit();
    EXPECT_EQ(failed.status().code(), Code::wrong_state);
    EXPECT_NE(failed.status().message().find("was freed"), std::string::npos)
        << failed.status().message();
    EXPECT_EQ(after_crash(mode), words_of(1));
    pool_.reset();
  }
}

TEST_F(DeviceArrayTest, arrays_stay_where_they_are) {
  std::byte* const buffer = gpu_.allocate(elements * 8);
  start(ArrayMode::copy, buffer);
  Words host(elements);
  EXPECT_EQ(pool_->resize_array(*array_, {elements}, host.data()).code(), Code::unsupported);
  EXPECT_EQ(pool_->resize_array(*array_, {elements}, nullptr).code(), Code::unsupported);
  gpu_.write(buffer, words_of(1));
  commit();
  ASSERT_TRUE(pool_->close_array(array_, true).ok());
  array_ = array_of(ArrayMode::copy, reinterpret_cast<std::byte*>(host.data()));
  ASSERT_NE(array_, nullptr);
  EXPECT_EQ(pool_->resize_array(*array_, {elements}, buffer).code(), Code::unsupported);
  commit();
}

}  // namespace
}  // namespace perdure
