// SPDX-License-Identifier: BSD-3-Clause
//
// The crash device: what is durable is the same whether or not anybody asks for images.
// ctest: DEPS pmem crash_device
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "pmem/testing/crash_device.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t device_bytes = 4096 - 8;  // its last line is not whole

// One verb, or a store through base(), drawn from `random`.
void step(CrashDevice& device, std::mt19937_64& random) {
  const std::uint64_t offset = random() % (device_bytes / 8) * 8;
  const std::uint64_t count = std::min(random() % 300, device_bytes - offset);
  const std::vector<std::byte> bytes(count, static_cast<std::byte>(random()));
  switch (random() % 6) {
    case 0:
      device.store(offset, bytes.data(), count);
      break;
    case 1:
      device.copy(offset, bytes.data(), count);
      break;
    case 2:
      device.flush(offset, count);
      break;
    case 3:
      device.failing_fence = random() % 4 == 0 ? device.counters().fence_calls + 1 : 0;
      EXPECT_EQ(device.fence().ok(), device.failing_fence == 0);
      break;
    default:
      std::copy(bytes.begin(), bytes.end(), device.base() + offset);
  }
}

TEST(CrashMedium, what_is_durable_does_not_depend_on_who_asks_for_images) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t history = 0; history < 50; ++history) {
    CrashDevice asked(4096, 64);
    CrashDevice unasked(4096, 64);
    asked.on_fence = [](CrashDevice&) {};
    std::mt19937_64 of_asked(seed + history);
    std::mt19937_64 of_unasked(seed + history);
    ASSERT_TRUE(asked.resize(device_bytes).ok() && unasked.resize(device_bytes).ok());
    for (int i = 0; i < 200; ++i) {
      step(asked, of_asked);
      step(unasked, of_unasked);
      const auto wanted = asked.durable();
      const auto found = unasked.durable();
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), found.begin(), found.end())) << i;
    }
    EXPECT_EQ(asked.counters().flushed_bytes, unasked.counters().flushed_bytes);
  }
}

TEST(CrashMedium, shares_no_page_with_other_memory_as_a_driver_pins_whole_pages) {
  std::vector<std::vector<std::byte>> others;
  for (const std::uint64_t bytes : {4096U, 8192U, 1U << 21U, 1U << 22U}) {
    others.emplace_back(bytes / 3);
    const CrashDevice device(bytes, 64);
    const auto unrecorded = CrashDevice::unrecorded(bytes, 64);
    for (const std::byte* const at : {device.base(), unrecorded->base()}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 4096, 0U) << bytes;
    }
  }
}

TEST(CrashMedium, a_direct_store_is_durable_once_its_line_is_flushed_and_fenced) {
  CrashDevice device(4096, 64);
  ASSERT_TRUE(device.resize(4096).ok());
  device.base()[100] = std::byte{1};
  device.base()[200] = std::byte{1};
  device.flush(96, 8);
  EXPECT_EQ(device.durable()[100], std::byte{0});
  ASSERT_TRUE(device.fence().ok());
  EXPECT_EQ(device.durable()[100], std::byte{1});
  EXPECT_EQ(device.durable()[200], std::byte{0});  // nobody flushed it
}

}  // namespace
}  // namespace perdure
