// SPDX-License-Identifier: BSD-3-Clause
//
// A pool of one rank on a device in memory, which can crash.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pmem/region.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"

namespace perdure {
inline constexpr Geometry pool_test_geometry{4096, 64, 4096};
inline constexpr std::uint64_t device_max = 1 << 20;

// A group of one that counts its exchanges.
class CountingGroup final : public SoloGroup {
 public:
  bool may_be_used_beside() const override { return false; }
  Status all_max(std::span<std::uint64_t>) override {
    ++exchanges;
    if (on_exchange) on_exchange();
    return Status::success();
  }
  std::uint64_t exchanges = 0;
  std::function<void()> on_exchange;
};

class PoolTest : public testing::Test {
 protected:
  // Opens the pool on the image of the last close(), or a new one.
  void open(const PoolOptions& options = {}) {
    auto device = std::make_unique<CrashDevice>(device_max_, 64);
    medium_ = device.get();
    if (image_.empty()) {
      auto region = format_region(*device, {{{1, 2}}, "test", 0, 1}, geometry_);
      ASSERT_TRUE(region.ok());
      ASSERT_TRUE(format_slots(*device, region.value()).ok());
    } else {
      device->load(image_);
    }
    auto region = check_region(*device);
    ASSERT_TRUE(region.ok()) << region.status().message();
    auto pool = Pool::attach(std::move(device), region.value(), group_, options);
    attach_status_ = pool.ok() ? Status::success() : pool.status();
    if (pool.ok()) pool_ = pool.take();
  }
  // A crash that keeps only what is durable.
  void crash() {
    image_.assign(medium_->durable().begin(), medium_->durable().end());
    pool_.reset();
  }
  VersionedArray* array(const std::string& name, const ArrayShape& shape,
                        const ArrayOptions& options = {}) {
    auto opened = pool_->open_array(name, shape, options);
    status_ = opened.ok() ? Status::success() : opened.status();
    return opened.ok() ? opened.value() : nullptr;
  }
  static ArrayShape shape(ArrayMode mode, std::uint64_t count = 1000, bool checksums = true) {
    return {ArrayType::int64, mode, checksums, {count}};
  }
  static std::int64_t* words(VersionedArray* array) {
    return reinterpret_cast<std::int64_t*>(array->working());
  }

  Geometry geometry_ = pool_test_geometry;
  std::uint64_t device_max_ = device_max;
  CountingGroup group_;
  std::vector<std::byte> image_;
  CrashDevice* medium_ = nullptr;
  std::unique_ptr<Pool> pool_;
  Status attach_status_;
  Status status_;
};

}  // namespace perdure
