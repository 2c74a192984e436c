// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays in memory of a GPU: every crash image of a run recovers to the right version, whether what
// the GPU has transferred reached the medium or not.
// ctest: NAME crash_device_test DEPS pool crash_device LABELS truth
#include <iostream>
#include <random>

#include "device/testing/fake_gpu.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t words = 2 * 8192 + 3 * 512 + 5;  // blocks, pages, and a rest
constexpr std::uint64_t device_bytes_max = 2 << 20;
constexpr Geometry geometry{1024, 64, 64U << 10U};
constexpr std::int64_t versions = 5;

using Words = std::vector<std::int64_t>;
using Image = std::span<const std::byte>;

// Some pages change in each version, and not the same ones.
Words words_of(std::int64_t version) {
  Words all(words);
  std::mt19937_64 random(1);
  for (std::int64_t at = 1; at <= version; ++at) {
    for (int i = 0; i < 7; ++i) all[random() % words] = at * 100 + i;
    all[words - 1] = at;
  }
  return all;
}

struct Case {
  ArrayMode mode;
  AtomicityModel model;
  bool in_background;
};

class DeviceCrash : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<Pool> pool_on(std::unique_ptr<Device> device, Group& group) {
    auto region = check_region(*device);
    EXPECT_TRUE(region.ok()) << region.status().message();
    auto pool = Pool::attach(std::move(device), region.value(), group, {});
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return pool.take();
  }
  static VersionedArray* open_on(Pool& pool, ArrayMode mode, std::byte* buffer) {
    ArrayOptions options;
    if (mode != ArrayMode::twin) options.buffer = buffer;
    options.of_program = true;
    auto array = pool.open_array("u", {ArrayType::int64, mode, true, {words}}, options);
    EXPECT_TRUE(array.ok()) << array.status().message();
    return array.value();
  }

  void recover(Image image) {
    ++images_;
    auto device = CrashDevice::unrecorded(device_bytes_max, 64);
    device->load(image);
    SoloGroup group;
    const auto pool = pool_on(std::move(device), group);
    const bool on_device = images_ % 2 == 0 && GetParam().mode != ArrayMode::twin;
    VersionedArray* const array = open_on(*pool, GetParam().mode, on_device ? recovered_ : nullptr);
    const auto version = pool->restart();
    ASSERT_TRUE(version.ok()) << version.status().message();
    const auto found = static_cast<std::int64_t>(version.value());
    EXPECT_GE(found, acknowledged_);
    EXPECT_LE(found, begun_);
    const auto* const host = reinterpret_cast<const std::int64_t*>(array->consistent());
    const Words contents =
        on_device ? gpu_.read<std::int64_t>(recovered_, words) : Words(host, host + words);
    EXPECT_EQ(contents, words_of(found)) << "version " << found;
    if (images_ % 7 == 0) {
      EXPECT_TRUE(pool->commit().ok());
    }
  }

  // twin: the whole from the host, then parts of it from the GPU.
  void write(Pool& pool, VersionedArray& array) {
    if (GetParam().mode != ArrayMode::twin) return;
    const Words before = words_of(begun_ - 1);
    ASSERT_TRUE(pool.write(array, 0, words * 8, before.data()).ok());
    for (const std::uint64_t first : {std::uint64_t{0}, words / 2 + 3}) {
      ASSERT_TRUE(pool.write(array, first * 8, (words - first) / 2 * 8, buffer_ + first * 8).ok());
    }
    const std::uint64_t rest = (words - words / 2 - 3) / 2 + words / 2 + 3;
    ASSERT_TRUE(pool.write(array, rest * 8, (words - rest) * 8, buffer_ + rest * 8).ok());
    ASSERT_TRUE(pool.write(array, words / 2 * 8, 24, buffer_ + words / 2 * 8).ok());
  }

  FakeGpu gpu_;
  SoloGroup group_;
  std::byte* buffer_ = gpu_.allocate(words * 8);
  std::byte* recovered_ = gpu_.allocate(words * 8);
  std::int64_t acknowledged_ = 0;
  std::int64_t begun_ = 0;
  std::uint64_t images_ = 0;
};

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  return std::string(mode_name(tested.param.mode)) + "_" + atomicity_name(tested.param.model) +
         (tested.param.in_background ? "_in_background" : "");
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceCrash,
                         testing::Values(Case{ArrayMode::copy, AtomicityModel::prefix, false},
                                         Case{ArrayMode::copy, AtomicityModel::words, true},
                                         Case{ArrayMode::copy, AtomicityModel::lines, false},
                                         Case{ArrayMode::twin, AtomicityModel::prefix, true},
                                         Case{ArrayMode::twin, AtomicityModel::words, false},
                                         Case{ArrayMode::twin, AtomicityModel::lines, true},
                                         Case{ArrayMode::log, AtomicityModel::prefix, true},
                                         Case{ArrayMode::log, AtomicityModel::words, false},
                                         Case{ArrayMode::log, AtomicityModel::lines, true}),
                         case_name);

TEST_P(DeviceCrash, every_image_has_one_whole_version) {
  auto device = std::make_unique<CrashDevice>(device_bytes_max, 64);
  auto region = format_region(*device, {{{1, 2}}, "test", 0, 1}, geometry);
  ASSERT_TRUE(region.ok());
  ASSERT_TRUE(format_slots(*device, region.value()).ok());
  std::uint64_t fences = 0;
  const auto crash = [&](CrashDevice& medium) {
    (void)medium.for_each_image(GetParam().model, 60, ++fences,
                                [this](Image image) { recover(image); });
  };
  CrashDevice& medium = *device;
  const auto pool = pool_on(std::move(device), group_);
  VersionedArray* const array = open_on(*pool, GetParam().mode, buffer_);
  ASSERT_TRUE(pool->restart().ok());
  const bool is_twin = GetParam().mode == ArrayMode::twin;
  EXPECT_EQ(array->on_device(), !is_twin);
  void* const stream = gpu_.make_stream();
  const Status named = is_twin ? pool->set_stream(gpu_.named(stream)) : Status::success();
  ASSERT_TRUE(named.ok());
  const Words later = words_of(0);
  medium.on_fence = crash;
  for (std::int64_t version = 1; version <= versions; ++version) {
    gpu_.write(buffer_, words_of(version));
    begun_ = version;
    write(*pool, *array);
    if (GetParam().in_background) {
      ASSERT_TRUE(pool->commit_begin().ok());
      EXPECT_EQ(pool->before_write(*array).ok(), !is_twin);
      gpu_.store(buffer_, later.data(), words * 8, is_twin ? stream : nullptr);
      ASSERT_TRUE(pool->commit_wait().ok());
      gpu_.synchronise(is_twin ? stream : nullptr);
    } else {
      ASSERT_TRUE(pool->commit().ok());
    }
    acknowledged_ = version;
  }
  medium.on_fence = nullptr;
  std::cout << fences << " fences, " << images_ << " images\n";
  EXPECT_GE(images_, 100U);
}

}  // namespace
}  // namespace perdure
