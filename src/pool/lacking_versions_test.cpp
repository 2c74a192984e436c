// SPDX-License-Identifier: BSD-3-Clause
//
// Versions that one of two ranks lacks after a crash: both must pick the same working copies
// (array_copies.hpp, pool.A1), as a rank that puts into another one's copy takes its number from
// its own.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/testing/thread_group.hpp"
#include "pool/testing/pool_fixture.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t ranks = 2;
constexpr Geometry geometry{4096, 64, 4096, 4};
constexpr std::uint64_t last_version = 6;
const ArrayShape shape{ArrayType::int64, ArrayMode::twin, true, {1000}};

using Images = std::array<std::vector<std::byte>, ranks>;

std::unique_ptr<CrashDevice> device_of(const std::vector<std::byte>& image) {
  auto device = std::make_unique<CrashDevice>(device_max, 64);
  device->load(image);
  return device;
}

std::vector<std::byte> new_image(std::uint32_t rank) {
  CrashDevice device(device_max, 64);
  const auto region = format_region(device, {{{1, 2}}, "test", rank, ranks}, geometry);
  EXPECT_TRUE(region.ok());
  EXPECT_TRUE(format_slots(device, region.value()).ok());
  return {device.durable().begin(), device.durable().end()};
}

// Both ranks, to the end of `body`; what is durable then.
template <typename Body>
void run(Images& images, Body body) {
  ThreadJob job(ranks);
  job.run([&](ThreadGroup& group) {
    std::vector<std::byte>& image = images[group.rank()];
    auto device = device_of(image);
    const CrashDevice& medium = *device;
    const auto region = check_region(*device);
    ASSERT_TRUE(region.ok());
    auto pool = Pool::attach(std::move(device), region.value(), group, {});
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    const auto array = pool.value()->open_array("t", shape, {});
    ASSERT_TRUE(array.ok());
    const auto restarted = pool.value()->restart();
    ASSERT_TRUE(restarted.ok()) << restarted.status().message();
    body(*pool.value(), *array.value(), group.rank());
    image.assign(medium.durable().begin(), medium.durable().end());
  });
}

// As if it had been killed in Pool::delete_version(), which the other rank did not come to.
void delete_here(std::vector<std::byte>& image, std::uint64_t version) {
  const auto device = device_of(image);
  const auto region = check_region(*device);
  ASSERT_TRUE(region.ok());
  Slots slots(*device, region.value());
  ASSERT_TRUE(delete_slot(*device, slots, version, version - 1).ok());
  image.assign(device->durable().begin(), device->durable().end());
}

TEST(LackingVersions, leave_both_ranks_the_same_working_copies) {
  for (std::uint64_t deleted = last_version - 2; deleted < last_version; ++deleted) {
    Images images = {new_image(0), new_image(1)};
    run(images, [](Pool& pool, VersionedArray& array, std::uint32_t) {
      for (std::uint64_t version = 1; version <= last_version; ++version) {
        std::memset(array.working(), static_cast<int>(version), array.size_bytes());
        ASSERT_TRUE(pool.commit().ok());
      }
    });
    delete_here(images[0], deleted);
    std::array<std::uint32_t, ranks> working{};
    run(images, [&](Pool& pool, VersionedArray& array, std::uint32_t rank) {
      working[rank] = array.working_copy();
      for (const VersionInfo& held : pool.versions()) EXPECT_NE(held.version, deleted);
      EXPECT_EQ(pool.versions().size(), 2U);
      EXPECT_EQ(array.consistent()[0], static_cast<std::byte>(last_version));
    });
    EXPECT_EQ(working[0], working[1]) << "without version " << deleted;
  }
}

}  // namespace
}  // namespace perdure
