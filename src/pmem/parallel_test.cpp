// SPDX-License-Identifier: BSD-3-Clause
//
// ParallelWriter: any number of threads gives the same bytes and checksums, every thread but the
// calling one fences, and a failed fence is reported.
#include "pmem/parallel.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace perdure {
namespace {

// A device in plain memory that notes who did what.
class NotedDevice final : public Device {
 public:
  explicit NotedDevice(std::size_t size) : bytes_(size) {}

  DeviceDescription describe() const override {
    return {"memory", PersistenceClass::process_crash, 64};
  }
  std::byte* base() const override { return const_cast<std::byte*>(bytes_.data()); }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  DeviceCounters counters() const override { return {}; }
  Status resize(std::uint64_t) override { return Status::success(); }
  void store(std::uint64_t, const void*, std::size_t) override {}
  void store_word(std::uint64_t, std::uint64_t) override {}

  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    ASSERT_LE(offset + count, bytes_.size());
    std::memcpy(bytes_.data() + offset, source, count);
    note(offset, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override { note(offset, count); }
  Status fence() override {
    const std::lock_guard lock(mutex_);
    unfenced_.erase(std::this_thread::get_id());
    ++fences_;
    return fail_at_ != 0 && fences_ >= fail_at_ ? Status(Code::io_error, "write-back failed")
                                                : Status::success();
  }

  void fail_from_fence(int fence) { fail_at_ = fence; }
  // pmem.D4: only the thread that called may still have to fence.
  bool others_fenced() const {
    return unfenced_.empty() || (unfenced_.size() == 1 && unfenced_.count(caller_) == 1);
  }
  int fences() const { return fences_; }
  std::uint64_t noted_bytes() const { return noted_bytes_; }
  std::size_t threads() const { return threads_.size(); }

 private:
  void note(std::uint64_t, std::size_t count) {
    const std::lock_guard lock(mutex_);
    unfenced_.insert(std::this_thread::get_id());
    threads_.insert(std::this_thread::get_id());
    noted_bytes_ += count;
  }

  std::vector<std::byte> bytes_;
  std::mutex mutex_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::set<std::thread::id> unfenced_;
  std::set<std::thread::id> threads_;
  std::uint64_t noted_bytes_ = 0;
  int fences_ = 0;
  int fail_at_ = 0;
};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

constexpr std::size_t sizes[] = {0, 1, 4096, 100'000, 1'000'001, 5 * 1024 * 1024 + 17};

class ParallelWriterTest : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelWriterTest, ::testing::Values(1U, 2U, 3U, 8U));

TEST_P(ParallelWriterTest, copies_exactly_the_range) {
  const std::vector<std::byte> source = random_bytes(6 * 1024 * 1024);
  for (const std::size_t count : sizes) {
    for (const std::uint64_t offset : {0U, 64U, 5000U}) {
      NotedDevice device(7 * 1024 * 1024);
      ParallelWriter writer(device, GetParam());
      ASSERT_TRUE(writer.copy(offset, source.data() + 3, count).ok());
      ASSERT_EQ(std::memcmp(device.base() + offset, source.data() + 3, count), 0);
      ASSERT_EQ(device.noted_bytes(), count);
      ASSERT_TRUE(device.others_fenced());
      ASSERT_LE(device.threads(), GetParam());
    }
  }
}

TEST_P(ParallelWriterTest, flushes_every_byte_once) {
  NotedDevice device(8 * 1024 * 1024);
  ParallelWriter writer(device, GetParam());
  EXPECT_EQ(writer.threads(), GetParam());
  for (int round = 1; round <= 50; ++round) {
    ASSERT_TRUE(writer.flush(100, 2 * 1024 * 1024).ok());
    ASSERT_EQ(device.noted_bytes(), 2U * 1024 * 1024 * static_cast<unsigned>(round));
    ASSERT_TRUE(device.others_fenced());
  }
}

TEST_P(ParallelWriterTest, gives_the_checksum_of_every_block) {
  const std::vector<std::byte> source = random_bytes(6 * 1024 * 1024);
  NotedDevice device(7 * 1024 * 1024);
  ParallelWriter writer(device, GetParam());
  for (const std::size_t count : sizes) {
    for (const std::size_t block : {512U, 65536U, 100'000U}) {
      const auto kind = block == 512 ? DataChecksum::crc64 : DataChecksum::xxh3;
      const std::size_t blocks = (count + block - 1) / block;
      std::vector<std::uint64_t> sums(blocks + 1, 42);
      ASSERT_TRUE(
          writer.copy_with_checksums(128, source.data(), count, {kind, block, sums.data()}).ok());
      ASSERT_EQ(std::memcmp(device.base() + 128, source.data(), count), 0);
      for (std::size_t i = 0; i < blocks; ++i) {
        const std::size_t bytes = std::min(block, count - i * block);
        ASSERT_EQ(sums[i], data_checksum(kind, source.data() + i * block, bytes)) << i;
      }
      ASSERT_EQ(sums[blocks], 42U) << "nothing after the last block is written";
      ASSERT_TRUE(device.others_fenced());
    }
  }
}

TEST_P(ParallelWriterTest, fences_once_in_every_thread_but_the_calling_one) {
  const std::vector<std::byte> source(4 * 1024 * 1024);
  NotedDevice device(source.size());
  ParallelWriter writer(device, GetParam());
  ASSERT_TRUE(writer.copy(0, source.data(), source.size()).ok());
  EXPECT_EQ(device.fences(), static_cast<int>(GetParam()) - 1);
  ASSERT_TRUE(writer.copy(0, source.data(), 4096).ok());
  EXPECT_EQ(device.fences(), static_cast<int>(GetParam()) - 1) << "too little to wake anybody";
}

TEST_P(ParallelWriterTest, reports_a_failed_fence_of_another_thread_once) {
  if (GetParam() == 1) GTEST_SKIP() << "there is no other thread";
  const std::vector<std::byte> source(4 * 1024 * 1024);
  NotedDevice device(source.size());
  ParallelWriter writer(device, GetParam());
  ASSERT_TRUE(writer.copy(0, source.data(), source.size()).ok());
  device.fail_from_fence(static_cast<int>(GetParam() - 1) * 2);  // the last of the next copy
  EXPECT_EQ(writer.copy(0, source.data(), source.size()).code(), Code::io_error);
  device.fail_from_fence(0);
  EXPECT_TRUE(writer.copy(0, source.data(), source.size()).ok());
}

}  // namespace
}  // namespace perdure
