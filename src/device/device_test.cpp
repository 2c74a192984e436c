// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/data_checksum.hpp"
#include "base/files.hpp"
#include "device/accelerators.hpp"
#include "device/testing/fake_gpu.hpp"
#include "device/testing/queue_device.hpp"

namespace perdure {
namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = 0x9E3779B97F4A7C15;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

bool maps_a_driver() {
  const std::string maps = read_kernel_text("/proc/self/maps");
  return maps.find("libcuda") != std::string::npos || maps.find("libamdhip") != std::string::npos;
}

// The first test of the program: the ones after it load a driver.
TEST(Driver, is_not_loaded_for_a_program_that_has_none) {
  std::vector<std::byte> buffer(100);
  Accelerators accelerators;
  EXPECT_EQ(accelerators.of(buffer.data(), buffer.size()).value(), nullptr);
  EXPECT_EQ(kind_of(buffer.data()), MemoryKind::host);
  for (const DriverKind kind : {DriverKind::cuda, DriverKind::hip}) {
    EXPECT_EQ(CudaDriver::find(kind), nullptr);
    EXPECT_FALSE(CudaDriver::is_in_use(kind));
  }
  EXPECT_FALSE(maps_a_driver());
}

class DeviceTest : public testing::Test {
 protected:
  Accelerator& accelerator_of(const std::byte* memory, std::uint64_t bytes) {
    auto found = accelerators_.of(memory, bytes);
    EXPECT_TRUE(found.ok()) << found.status().message();
    EXPECT_NE(found.value(), nullptr);
    return *found.value();
  }
  FakeGpu gpu_;
  Accelerators accelerators_;
};

TEST_F(DeviceTest, memory_is_what_the_driver_says) {
  std::vector<std::byte> host(100);
  EXPECT_EQ(kind_of(host.data()), MemoryKind::host);
  EXPECT_EQ(kind_of(gpu_.allocate(100)), MemoryKind::device);
  EXPECT_EQ(kind_of(gpu_.allocate_managed(100)), MemoryKind::managed);
  EXPECT_EQ(kind_of(gpu_.allocate_pinned(100)), MemoryKind::pinned);
  EXPECT_TRUE(CudaDriver::is_in_use());
}

TEST_F(DeviceTest, memory_that_ends_too_soon_is_refused) {
  std::byte* const memory = gpu_.allocate(4096);
  EXPECT_TRUE(accelerators_.of(memory, 4096).ok());
  const auto refused = accelerators_.of(memory + 96, 4096);
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().message().find("ends after 4000"), std::string::npos)
      << refused.status().message();
}

TEST_F(DeviceTest, one_context_has_one_accelerator) {
  std::byte* const a = gpu_.allocate(100);
  std::byte* const b = gpu_.allocate(100);
  EXPECT_EQ(&accelerator_of(a, 100), &accelerator_of(b, 100));
}

TEST_F(DeviceTest, sums_are_those_of_the_format) {
  constexpr std::size_t blocks = 5;
  const auto bytes = random_bytes(blocks << 16U);
  std::byte* const memory = gpu_.allocate(bytes.size());
  gpu_.write(memory, bytes);
  Accelerator& accelerator = accelerator_of(memory, bytes.size());
  ASSERT_TRUE(accelerator.has_sums());
  auto done = AcceleratorEvent::make(accelerator).take();
  for (const auto unit : {Accelerator::Unit::block, Accelerator::Unit::page}) {
    const std::uint64_t unit_bytes = Accelerator::bytes_of(unit);
    std::vector<std::uint64_t> sums(bytes.size() / unit_bytes);
    auto at = AcceleratorMemory::make(accelerator, 8 * sums.size()).take();
    ASSERT_TRUE(accelerator.follow(nullptr).ok());
    ASSERT_TRUE(accelerator.sum(unit, address_of(memory), at.at(), sums.size()).ok());
    auto* const to = reinterpret_cast<std::byte*>(sums.data());
    ASSERT_TRUE(accelerator.copy_to_host(to, at.at(), 8 * sums.size()).ok());
    ASSERT_TRUE(accelerator.record(done.handle()).ok());
    ASSERT_TRUE(accelerator.wait(done.handle()).ok());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i],
                data_checksum(DataChecksum::xxh3, bytes.data() + i * unit_bytes, unit_bytes))
          << i;
    }
  }
}

TEST_F(DeviceTest, what_differs_from_the_table_is_listed_and_stored) {
  constexpr std::size_t pages = 40;
  auto bytes = random_bytes(pages << 12U);
  std::byte* const memory = gpu_.allocate(bytes.size());
  Accelerator& accelerator = accelerator_of(memory, bytes.size());
  auto sums = AcceleratorMemory::make(accelerator, 8 * pages).take();
  auto table = AcceleratorMemory::make(accelerator, 8 * pages).take();
  auto list = AcceleratorMemory::make(accelerator, 4 * pages).take();
  auto count = AcceleratorMemory::make(accelerator, 4).take();
  auto done = AcceleratorEvent::make(accelerator).take();
  const ChangeTables tables{sums.at(), table.at(), list.at(), count.at()};
  std::byte* const pool = gpu_.allocate_pinned(bytes.size());
  std::memset(pool, 0, bytes.size());
  ASSERT_TRUE(accelerator.clear(table.at(), 8 * pages).ok());
  for (const std::vector<std::size_t>& changed : {std::vector<std::size_t>{3, 17, 39}, {}, {17}}) {
    for (const std::size_t page : changed) bytes[page << 12U] ^= std::byte{1};
    gpu_.write(memory, bytes);
    const std::vector<std::byte> before(pool, pool + bytes.size());
    ASSERT_TRUE(accelerator.follow(nullptr).ok());
    ASSERT_TRUE(
        accelerator.sum(Accelerator::Unit::page, address_of(memory), sums.at(), pages).ok());
    ASSERT_TRUE(accelerator.list_changed(tables, pages).ok());
    ASSERT_TRUE(accelerator.store_listed(tables, address_of(memory), pool, 4096).ok());
    std::uint32_t listed = 0;
    ASSERT_TRUE(
        accelerator.copy_to_host(reinterpret_cast<std::byte*>(&listed), count.at(), 4).ok());
    ASSERT_TRUE(accelerator.record(done.handle()).ok());
    ASSERT_TRUE(accelerator.wait(done.handle()).ok());
    const bool first = before == std::vector<std::byte>(bytes.size());
    EXPECT_EQ(listed, first ? pages : changed.size());  // the table knew nothing
    EXPECT_EQ(std::memcmp(pool, bytes.data(), bytes.size()), 0);
  }
}

// What the driver of this process was asked for since, of what has kernels.
class Kernels : public DeviceTest {
 protected:
  Kernels() {
    if (gpu_.is_hip()) skipped_ = true;
  }
  void SetUp() override {
    if (skipped_) GTEST_SKIP() << "there are no kernels for AMD's GPUs";
  }
  std::uint64_t loaded() const { return gpu_.calls("cuModuleLoadData") - loaded_before_; }
  std::uint64_t unloaded() const { return gpu_.calls("cuModuleUnload") - unloaded_before_; }
  void reset_context() const {
    FakeGpu::check(gpu_.call<int(int)>("cuDevicePrimaryCtxReset_v2")(0));
  }
  // The block sum that the accelerator of that memory, of a block, computes is right.
  void expect_sum(Accelerators& of, const std::byte* memory) const {
    auto found = of.of(memory, block_bytes);
    ASSERT_TRUE(found.ok()) << found.status().message();
    Accelerator& accelerator = *found.value();
    ASSERT_TRUE(accelerator.has_sums());
    const auto bytes = gpu_.read<std::byte>(memory, block_bytes);
    const AcceleratorMemory sums = AcceleratorMemory::make(accelerator, 8).take();
    std::uint64_t sum = 0;
    ASSERT_TRUE(accelerator.sum(Accelerator::Unit::block, address_of(memory), sums.at(), 1).ok());
    ASSERT_TRUE(accelerator.copy_to_host(reinterpret_cast<std::byte*>(&sum), sums.at(), 8).ok());
    ASSERT_TRUE(accelerator.finish().ok());
    EXPECT_EQ(sum, data_checksum(DataChecksum::xxh3, bytes.data(), block_bytes));
  }

  static constexpr std::uint64_t block_bytes = 64U << 10U;

 private:
  bool skipped_ = false;
  const std::uint64_t loaded_before_ = gpu_.calls("cuModuleLoadData");
  const std::uint64_t unloaded_before_ = gpu_.calls("cuModuleUnload");
};

TEST_F(Kernels, are_loaded_once_for_all_pools_of_a_context_and_go_with_the_last) {
  std::byte* const memory = gpu_.allocate(block_bytes);
  const std::uint64_t held = gpu_.held("device_bytes");
  for (const std::uint64_t time : {1U, 2U}) {
    auto first = std::make_unique<Accelerators>();
    Accelerators second;
    expect_sum(*first, memory);
    expect_sum(second, memory);
    EXPECT_EQ(loaded(), time);
    first.reset();
    expect_sum(second, memory);
    EXPECT_EQ(unloaded(), time - 1);
  }
  EXPECT_EQ(unloaded(), 2U);
  EXPECT_EQ(gpu_.held("device_bytes"), held);
}

TEST_F(Kernels, are_loaded_once_for_pools_that_are_opened_at_once) {
  std::byte* const memory = gpu_.allocate(block_bytes);
  std::vector<Accelerators> pools(4);
  std::vector<std::thread> threads;
  for (Accelerators& pool : pools) {
    threads.emplace_back([&pool, memory] {
      const auto found = pool.of(memory, block_bytes);
      EXPECT_TRUE(found.ok()) << found.status().message();
      EXPECT_TRUE(found.ok() && found.value()->has_sums());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loaded(), 1U);
  for (Accelerators& pool : pools) expect_sum(pool, memory);
}

TEST_F(Kernels, of_each_context_are_its_own) {
  FakeGpu other(1);
  std::byte* const here = gpu_.allocate(block_bytes);
  std::byte* const there = other.allocate(block_bytes);
  expect_sum(accelerators_, here);
  expect_sum(accelerators_, there);
  EXPECT_EQ(loaded(), 2U);
}

// The context that comes has the handle of the one that is gone.
TEST_F(Kernels, of_a_context_that_is_gone_are_neither_used_nor_unloaded) {
  auto before = std::make_unique<Accelerators>();
  expect_sum(*before, gpu_.allocate(block_bytes));
  reset_context();
  std::byte* const memory = gpu_.allocate(block_bytes);
  expect_sum(accelerators_, memory);
  EXPECT_EQ(loaded(), 2U);
  before.reset();
  EXPECT_EQ(unloaded(), 0U);
  expect_sum(accelerators_, memory);
  Accelerators after;
  expect_sum(after, memory);
  EXPECT_EQ(loaded(), 2U);
}

// Nothing tells of such a context whether it is gone.
TEST_F(Kernels, that_there_was_no_room_to_mark_are_one_pools) {
  std::byte* const memory = gpu_.allocate(block_bytes);
  gpu_.leave(0);
  Accelerators other;
  for (Accelerators* const pool : {&accelerators_, &other}) {
    ASSERT_TRUE(pool->of(memory, block_bytes).ok());
  }
  EXPECT_EQ(loaded(), 2U);
  gpu_.leave_enough();
  for (Accelerators* const pool : {&accelerators_, &other}) {
    const auto found = pool->of(memory, block_bytes);
    ASSERT_TRUE(found.value()->with_room([](std::uint64_t) { return Status::success(); }).ok());
    expect_sum(*pool, memory);
  }
}

TEST_F(DeviceTest, registrations_do_not_overlap_and_are_given_back) {
  constexpr std::size_t pages = 8;
  std::byte* const memory = gpu_.allocate(100);
  Accelerator& accelerator = accelerator_of(memory, 100);
  auto* const host = static_cast<std::byte*>(
      ::mmap(nullptr, pages << 12U, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int round = 0; round < 2; ++round) {
    RegisteredRanges ranges;
    EXPECT_TRUE(ranges.add(accelerator, host + 5000, 100));    // page 1
    EXPECT_TRUE(ranges.add(accelerator, host + 13000, 9000));  // pages 3 to 5
    EXPECT_TRUE(ranges.add(accelerator, host + 100, 30000));   // and what is between, 0 to 7
    EXPECT_TRUE(ranges.add(accelerator, host + 8000, 9000));
    EXPECT_EQ(ranges.count(), 5U);
    std::vector<std::size_t> pieces;
    const Status walked =
        ranges.for_each_piece(host + 100, 30000, [&](std::byte* at, std::uint64_t bytes) {
          EXPECT_EQ(at, host + 100 + (pieces.empty() ? 0 : pieces.back()));
          pieces.push_back(static_cast<std::size_t>(at - host) - 100 + bytes);
          return Status::success();
        });
    EXPECT_TRUE(walked.ok());
    EXPECT_EQ(pieces, (std::vector<std::size_t>{3996, 8092, 12188, 24476, 30000}));
  }
  EXPECT_EQ(kind_of(host), MemoryKind::host);
  ::munmap(host, pages << 12U);
}

// The saver registers copies while the program transfers to one that is.
TEST_F(DeviceTest, ranges_are_registered_while_others_are_walked_through) {
  constexpr std::size_t pages = 400;
  std::byte* const memory = gpu_.allocate(100);
  Accelerator& accelerator = accelerator_of(memory, 100);
  auto* const host = static_cast<std::byte*>(
      ::mmap(nullptr, pages << 12U, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::byte* const middle = host + (pages / 2 << 12U);
  RegisteredRanges ranges;
  ASSERT_TRUE(ranges.add(accelerator, middle, 4096));
  std::atomic<bool> done = false;
  std::thread saver([&] {
    for (std::size_t page = 0; page < pages; page += 8) {
      EXPECT_TRUE(ranges.add(accelerator, host + (page << 12U), 4096));
    }
    done = true;
  });
  while (!done) {
    std::uint64_t bytes = 0;
    (void)ranges.for_each_piece(middle, 4096, [&](std::byte* at, std::uint64_t count) {
      EXPECT_EQ(at, middle);
      bytes += count;
      return Status::success();
    });
    ASSERT_EQ(bytes, 4096U);
  }
  saver.join();
  EXPECT_EQ(ranges.count(), pages / 8);
  ranges.give_back();
  ::munmap(host, pages << 12U);
}

// A child has the same pages until one of the two stores to them, and then the one that stores has
// another page than the driver.
TEST_F(DeviceTest, pinned_memory_is_not_a_childs) {
  std::byte* const memory = gpu_.allocate(100);
  const PinnedMemory pinned = PinnedMemory::make(accelerator_of(memory, 100), 3 << 12U).take();
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char pages[3];
    ::_exit(::mincore(pinned.at(), 3 << 12U, pages) == 0 ? 0 : errno);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), ENOMEM);
}

// `memory` has them, and gets others.
void expect_ring_passes(HostRing& ring, const std::byte* memory,
                        const std::vector<std::byte>& bytes, const std::vector<std::byte>& others) {
  std::vector<std::byte> taken;
  const Status passed =
      ring.pass(address_of(memory), bytes.size(),
                [&](std::uint64_t begin, const std::byte* at, std::uint64_t count) {
                  EXPECT_EQ(begin, taken.size());
                  taken.insert(taken.end(), at, at + count);
                  return Status::success();
                });
  EXPECT_TRUE(passed.ok()) << passed.message();
  EXPECT_TRUE(taken == bytes);
  const Status filled = ring.fill(address_of(memory), others.size(),
                                  [&](std::uint64_t begin, std::byte* at, std::uint64_t count) {
                                    std::memcpy(at, others.data() + begin, count);
                                  });
  EXPECT_TRUE(filled.ok()) << filled.message();
}

TEST_F(DeviceTest, bytes_pass_through_the_ring_in_order) {
  auto bytes = random_bytes((16U << 20U) + 12345);
  std::byte* const memory = gpu_.allocate(bytes.size());
  gpu_.write(memory, bytes);
  Accelerator& accelerator = accelerator_of(memory, bytes.size());
  HostRing* const ring = accelerators_.ring_of(accelerator, 64U << 10U).value();
  EXPECT_EQ(accelerators_.ring_of(accelerator, 64U << 10U).value(), ring);
  const std::vector<std::byte> others(bytes.rbegin(), bytes.rend());
  expect_ring_passes(*ring, memory, bytes, others);
  EXPECT_TRUE(gpu_.read<std::byte>(memory, bytes.size()) == others);
}

TEST(Functions, bytes_pass_through_the_ring_in_order) {
  QueueDevice device;
  const auto bytes = random_bytes((16U << 20U) + 12345);
  std::byte* const memory = device.place(bytes.size());
  device.store(memory, bytes);
  Accelerators accelerators;
  Accelerator* const accelerator = accelerators.by(device.functions());
  EXPECT_EQ(accelerators.by(device.functions()), accelerator);
  EXPECT_NE(accelerators.by(device.plain_functions()), accelerator);
  ASSERT_TRUE(accelerator->follow(nullptr).ok());
  const std::vector<std::byte> others(bytes.rbegin(), bytes.rend());
  expect_ring_passes(*accelerators.ring_of(*accelerator, 64U << 10U).value(), memory, bytes,
                     others);
  EXPECT_TRUE(device.read<std::byte>(memory, bytes.size()) == others);
}

TEST(Functions, two_pools_call_them_one_at_a_time) {
  QueueDevice device;
  const auto use = [&device] {
    Accelerators of_a_pool;
    Accelerator* const accelerator = of_a_pool.by(device.functions());
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(accelerator->finish().ok());
  };
  std::thread other(use);
  use();
  other.join();
}

}  // namespace
}  // namespace perdure
