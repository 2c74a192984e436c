// SPDX-License-Identifier: BSD-3-Clause
//
// Random lives of pools of one rank (testing/rank_life.hpp), beside what each version must hold.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include "pool/testing/pool_fixture.hpp"
#include "pool/testing/rank_life.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

class Histories : public PoolTest {
 protected:
  Histories() { device_max_ = 4U << 20U; }
  ~Histories() override { pool_.reset(); }  // before the driver and what it has goes
  std::uint64_t below(std::uint64_t end) { return life_.below(end); }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

  void begin_life() {
    pool_.reset();
    image_.clear();
    geometry_ = {4096, one_in(3) ? 4096U : 64U, one_in(2) ? 65536U : 4096U,
                 static_cast<std::uint32_t>(2 + below(4))};
    const std::uint64_t arrays = 1 + below(4);
    staged_ = one_in(4);
    life_.begin(arrays, staged_);
    life_.files().emplace_back();
    open();
    life_.set_pool(*pool_, *medium_);
    life_.attach(0, true);
    start(0);
  }
  void start(std::uint64_t version) {
    const auto restored = pool_->restart();
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    ASSERT_EQ(restored.value(), version);
    life_.take(version, true);
  }

  // With a fence that fails in a commit that is refused, too, nobody would know the outcome.
  LifeCommit some_commit() {
    LifeCommit how;
    how.refused = one_in(8);
    if (!how.refused && one_in(6)) how.failing_fence = 1 + below(4);
    how.asynchronous = one_in(2);
    return how;
  }
  Result<std::uint64_t> commit_staged_several() {
    return life_.commit_staged_several(
        one_in(6) ? 1 + below(8) : 0, [this] { return one_in(2); }, [](bool ok) { return ok; });
  }
  void commit_somehow() {
    life_.store_some();
    life_.note_contents();
    life_.accept(staged_ && !one_in(4) ? commit_staged_several() : life_.commit(some_commit()));
    ASSERT_TRUE(pool_->usable().ok()) << pool_->usable().message();
  }

  void go_back() {
    const auto list = pool_->versions();
    if (list.empty()) return;
    const std::uint64_t version = list[below(list.size())].version;
    if (version != life_.head() && one_in(4)) {
      ASSERT_TRUE(pool_->delete_version(version).ok());
      return;
    }
    life_.make_fit(version);
    if (life_.fits(version)) return restore(version, false);
    ASSERT_FALSE(pool_->restore(version).ok());
  }
  void restore(std::uint64_t version, bool at_start) {
    const Status restored = pool_->restore(version);
    ASSERT_TRUE(restored.ok()) << restored.message();
    life_.take(version, at_start);
  }
  void crash_and_open() {
    const std::uint64_t version = life_.head();
    crash();
    open();
    ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
    const auto list = pool_->versions();
    const bool goes_back = !list.empty() && one_in(4);
    life_.set_pool(*pool_, *medium_);
    life_.attach(version, !goes_back);
    if (!goes_back) return start(version);
    const std::uint64_t to = list[below(list.size())].version;
    return life_.fits(to) ? restore(to, true) : start(version);
  }

  void step() {
    LifeArray& member = life_.some_array();
    switch (below(12)) {
      case 0:
        return go_back();
      case 1:
        return life_.close(member, one_in(3));
      case 2:
      case 3:
        return life_.open(member, true);
      case 4:
        return crash_and_open();
      case 5:
      case 6:
      case 7:
        return life_.resize_somehow(member);
      case 8:
        return life_.store(member);
      default:
        return commit_somehow();
    }
  }
  void compare() {
    life_.compare();
    for (const VersionInfo& info : pool_->versions()) life_.compare_shapes(info.version);
  }
  // All that are left, at the end.
  void compare_versions() {
    life_.close_all();
    for (const VersionInfo& info : pool_->versions()) {
      if (!life_.fits(info.version)) continue;
      restore(info.version, false);
      life_.compare_restored();
    }
  }

  FakeGpu gpu_;
  RankLife life_{test_seed(), &gpu_};
  bool staged_ = false;
};

TEST_F(Histories, of_several_arrays_bring_back_each_version) {
  const int lives = slow_tests() ? 400 : 30;
  for (int life = 0; life < lives; ++life) {
    begin_life();
    for (int at = 0; at < 60 && !HasFailure(); ++at) {
      SCOPED_TRACE(sentence("life ", life, ", step ", at));
      step();
      if (!HasFailure()) compare();
    }
    if (!HasFailure()) crash_and_open();
    if (!HasFailure()) compare_versions();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdure
