// SPDX-License-Identifier: BSD-3-Clause
//
// Another number of ranks, whose arrays are in memory of devices: of two GPUs in the process, each
// of several ranks, or of a device that functions of the program reach.
// ctest: DEPS rank_job ALONE LABELS truth
#include <gtest/gtest.h>

#include "device/testing/fake_gpu.hpp"
#include "device/testing/queue_device.hpp"
#include "rank_job.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

class OfGpu final : public RankMemory {
 public:
  explicit OfGpu(std::uint32_t rank) : gpu_(static_cast<int>(rank % 2)) {}
  std::byte* allocate(std::uint64_t bytes) override {
    return gpu_.allocate(std::max<std::uint64_t>(bytes, 8));
  }
  void write(std::byte* to, const std::vector<std::int64_t>& from) override {
    if (!from.empty()) gpu_.write(to, from);
  }
  std::vector<std::int64_t> read(const std::byte* from, std::uint64_t count) override {
    return count == 0 ? std::vector<std::int64_t>() : gpu_.read<std::int64_t>(from, count);
  }

 private:
  FakeGpu gpu_;
};

class ByFunctions final : public RankMemory {
 public:
  const DeviceFunctions* functions() const override { return &functions_; }
  std::byte* allocate(std::uint64_t bytes) override { return device_.place(bytes); }
  void write(std::byte* to, const std::vector<std::int64_t>& from) override {
    device_.store(to, from);
  }
  std::vector<std::int64_t> read(const std::byte* from, std::uint64_t count) override {
    return device_.read<std::int64_t>(from, count);
  }

 private:
  QueueDevice device_;
  const DeviceFunctions functions_ = device_.functions();
};

struct Where {
  const char* name;
  std::function<std::unique_ptr<RankMemory>(std::uint32_t)> memory;
};

class RanksOnDevices : public testing::TestWithParam<std::tuple<Where, ArrayMode>> {};
INSTANTIATE_TEST_SUITE_P(
    All, RanksOnDevices,
    testing::Combine(
        testing::Values(
            Where{"gpus", [](std::uint32_t rank) { return std::make_unique<OfGpu>(rank); }},
            Where{"functions", [](std::uint32_t) { return std::make_unique<ByFunctions>(); }}),
        testing::Values(ArrayMode::copy, ArrayMode::log)),
    [](const auto& each) {
      return std::get<0>(each.param).name + std::string("_") + mode_name(std::get<1>(each.param));
    });

void expect_right(const JobResult& result, std::uint64_t restored) {
  EXPECT_TRUE(result.opened.ok()) << result.opened.message();
  for (const std::string& what : result.wrong) ADD_FAILURE() << what;
  EXPECT_EQ(result.restored, restored);
}

// Some of the runs have a device and some have not, which the pool does not know.
TEST_P(RanksOnDevices, go_on_with_what_another_number_made_on_devices_or_processors) {
  const auto& [where, mode] = GetParam();
  const std::uint64_t seed = test_seed();
  for (const std::uint64_t on_device : {7U, 2U, 5U}) {  // bit N: run N
    SCOPED_TRACE(on_device);
    const perdure_test::TemporaryDirectory directory;
    JobRun run{directory / "pool", 1, seed, mode};
    run.table_elements = 3000;
    run.keep = static_cast<std::uint32_t>(1 + (seed + on_device) % 2);
    std::uint64_t made = 0;
    for (std::uint32_t number = 0; number < 3; ++number) {
      run.ranks = number == 1 ? 5 : 3;
      run.memory = (on_device >> number & 1U) != 0 ? where.memory : nullptr;
      run.seed = seed + number;
      expect_right(run_job(run, 3), made);
      made += 3;
      expect_right(run_job(run, 1), made);
      ++made;
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace perdure
