// SPDX-License-Identifier: BSD-3-Clause
//
// A pool with one array in memory of a GPU, or given elements from there, on a driver that needs
// none.
#pragma once

#include "device/testing/fake_gpu.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "pool/testing/words.hpp"

namespace perdure {

class DevicePoolTest : public PoolTest {
 protected:
  DevicePoolTest() {
    geometry_ = {4096, 4096, 64U << 10U};  // blocks that a GPU sums
    device_max_ = 8 << 20;
  }
  ~DevicePoolTest() override { pool_.reset(); }  // before the driver goes

  Result<VersionedArray*> open_array(const ArrayShape& of, std::byte* buffer) {
    ArrayOptions options;
    options.buffer = buffer;
    options.keep_contents = buffer != nullptr;
    options.of_program = true;
    return pool_->open_array("u", of, options);
  }
  // Opens the pool and the array, and restarts. Returns the version.
  std::uint64_t start(const ArrayShape& of, std::byte* buffer) {
    open();
    const auto opened = open_array(of, buffer);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened.ok()) return 0;
    array_ = opened.value();
    const auto version = pool_->restart();
    EXPECT_TRUE(version.ok()) << version.status().message();
    return version.ok() ? version.value() : 0;
  }
  // What a restart after a crash at this moment has, in memory of the host.
  Words after_crash(const ArrayShape& of) {
    crash();
    start(of, nullptr);
    const auto* const found = reinterpret_cast<const std::int64_t*>(array_->consistent());
    return {found, found + of.extents[0]};
  }

  // Of an array of so many bytes. What else is registered is less than one.
  std::uint64_t registered_copies(std::uint64_t bytes) const {
    return gpu_.held("registered_bytes") / bytes;
  }

  FakeGpu gpu_;
  VersionedArray* array_ = nullptr;
};

}  // namespace perdure
