// SPDX-License-Identifier: BSD-3-Clause
//
// Crash sweep: at every fence of a run, in every tier and with either lag, each image that a crash
// could leave recovers to the version before or the one that is being made, and never to less than
// a returned one. Some images are gone on from with the whole runtime.
// ctest: TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>

#include <mutex>

#include "model_job.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t iterations = 11;
const std::uint64_t images_per_fence = slow_tests() ? 300 : 100;
constexpr std::uint64_t continue_every = 23;

struct SweepCase {
  Tier tier;
  unsigned lag;
  bool helper;
  AtomicityModel model;
};

std::string name_of(const testing::TestParamInfo<SweepCase>& info) {
  return std::string(tier_name(info.param.tier)) + "_lag" + std::to_string(info.param.lag) +
         (info.param.helper ? "_beside_" : "_") + atomicity_name(info.param.model);
}

// What each iteration does: every way in which an object changes, or does not.
void run_iteration(ModelJob& job, std::uint64_t iteration, Random& random) {
  const std::uint64_t bytes = job.now.bytes.size();
  const auto nest = [&](std::uint64_t first, std::vector<std::size_t> counts,
                        std::vector<std::size_t> strides) {
    job.nest({first, std::move(counts), std::move(strides), {}}, random);
  };
  switch (iteration % 9) {
    case 0:  // all, with ragged lines
      nest(0, {700, 6}, {1, 700});
      return nest(4200, {bytes - 4200}, {1});
    case 1:  // some rows of it: the others must come from the version before, or the one before
             // that
      return nest(100, {600, 4}, {1, 1100});
    case 2:
      return;  // nothing
    case 3:    // a nest, then a store that nobody announced
      nest(512, {1024}, {1});
      return job.store({1000, 1300}, false, random);
    case 4:
      nest(64, {48, 3, 2}, {1, 64, 1024});
      return nest(100, {700, 4}, {1, 1000});
    case 5:  // rows that share lines with the ghost cells between them
      return nest(24, {600, 7}, {1, 616});
    case 6:  // the same twice, and rows between which there is nothing
      nest(40, {600, 7}, {1, 616});
      return nest(8, {520, 8}, {1, 520});
    case 7:  // more nests than are closed to stores that nobody announces, and such a store
      for (int i = 0; i < 6; ++i) nest(512, {1024}, {1});
      return job.store({bytes - 700, bytes - 690}, false, random);
    default:
      return job.store({bytes - 9, bytes}, false, random);
  }
}

class IpvCrash : public testing::TestWithParam<SweepCase> {
 protected:
  void SetUp() override {
    shape_.tier = GetParam().tier;
    shape_.lag = GetParam().lag;
    shape_.helper = GetParam().helper;
    shape_.bytes = 4096 + 520;
    Random random(7);
    fresh_.bytes.resize(shape_.bytes);
    for (auto& byte : fresh_.bytes) byte = static_cast<std::uint8_t>(random());
  }

  void run() {
    Random random(3);
    ModelJob job(shape_, model_device(shape_));
    history_.push_back({std::vector<std::uint8_t>(shape_.bytes), 0});
    job.device().on_fence = [this](CrashDevice& device) { crash_here(device); };
    ASSERT_TRUE(job.start(fresh_).ok());
    for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
      run_iteration(job, iteration, random);
      if (iteration == 3) {
        ASSERT_TRUE(job.set().flush_early(job.object().address(), shape_.bytes).ok());
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ModelVersion next = job.now;
        ++next.step;
        history_.push_back(next);
      }
      const auto persisted = job.persist();
      ASSERT_TRUE(persisted.ok()) << persisted.status().message();
      const std::lock_guard<std::mutex> lock(mutex_);
      acknowledged_ = persisted.value();
    }
    ASSERT_TRUE(job.set().wait().ok());
    job.device().on_fence = nullptr;
    EXPECT_EQ(job.wrong, "");
  }

  std::uint64_t fences_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t continued_ = 0;
  std::string wrong_;

 private:
  void complain(const std::string& what) {
    if (wrong_.empty()) wrong_ = "fence " + std::to_string(fences_) + ": " + what;
  }

  // Perhaps in the flushing thread.
  void crash_here(CrashDevice& device) {
    ++fences_;
    device.for_each_image(GetParam().model, images_per_fence, fences_,
                          [this](std::span<const std::byte> image) { check(image); });
  }

  void check(std::span<const std::byte> image) {
    ++images_;
    const ModelRecovery found = recover_model(shape_, image);
    if (!found.status.ok()) return complain("recovery: " + found.status.message());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (found.version < acknowledged_ || found.version >= history_.size()) {
      return complain("version " + std::to_string(found.version) + " came back, " +
                      std::to_string(acknowledged_) + " was acknowledged");
    }
    const bool same = found.version == 0 || found.contents == history_[found.version];
    if (!same) complain("version " + std::to_string(found.version) + " has other contents");
    if (images_ % continue_every == 0) kept_.emplace_back(image.begin(), image.end());
  }

 protected:
  // With the whole runtime, when the first run has ended.
  void go_on() {
    for (const auto& image : kept_) {
      ++continued_;
      Random random(continued_);
      ModelJob job(shape_, model_device(shape_, image));
      const auto restarted = job.start(fresh_);
      ASSERT_TRUE(restarted.ok());
      const std::uint64_t version = restarted.value();
      const ModelVersion& expected = version == 0 ? fresh_ : history_[version];
      ASSERT_EQ(job.now.bytes, expected.bytes) << "version " << version;
      run_iteration(job, continued_, random);
      const auto persisted = job.persist();
      ASSERT_TRUE(persisted.ok() && job.set().wait().ok());
      const ModelRecovery found = recover_model(shape_, job.device().durable());
      ASSERT_EQ(found.version, version + 1);
      ASSERT_TRUE(found.contents == job.now);
      ASSERT_EQ(job.wrong, "");
    }
  }

  ModelShape shape_;
  ModelVersion fresh_;
  std::mutex mutex_;  // what the flushing thread reads
  std::vector<ModelVersion> history_;
  std::uint64_t acknowledged_ = 0;
  std::vector<std::vector<std::byte>> kept_;
};

TEST_P(IpvCrash, every_image_recovers_to_the_version_before_or_after) {
  run();
  EXPECT_EQ(wrong_, "");
  EXPECT_GE(fences_, 2 * iterations);
  EXPECT_GT(images_, fences_);
  go_on();
  EXPECT_GT(continued_, shape_.helper ? 0U : 10U);
  std::printf("%llu fences, %llu images, %llu gone on from\n",
              static_cast<unsigned long long>(fences_), static_cast<unsigned long long>(images_),
              static_cast<unsigned long long>(continued_));
}

std::vector<SweepCase> cases() {
  std::vector<SweepCase> all;
  for (const Tier tier : {PERDURE_IPV_AUTO, PERDURE_IPV_COPY, PERDURE_IPV_STREAM}) {
    for (const AtomicityModel model :
         {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
      all.push_back({tier, 0, false, model});
      all.push_back({tier, 1, false, model});
      all.push_back({tier, 1, true, model});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Tiers, IpvCrash, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace perdure
