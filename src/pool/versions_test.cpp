// SPDX-License-Identifier: BSD-3-Clause
//
// Versions of a pool: keeping, restoring, branching, deleting.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>

#include "pool/testing/pool_fixture.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

class Versions : public PoolTest {
 protected:
  void keep(std::uint32_t versions) { geometry_.slots = versions + 1; }
  void reopen() {
    crash();
    open();
    ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
  }
  void open_all() {
    u_ = array("u", shape(ArrayMode::copy));
    t_ = array("t", shape(ArrayMode::twin));
    w_ = array("w", shape(ArrayMode::log), {nullptr, true});
    ASSERT_NE(w_, nullptr) << status_.message();
    ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration_, sizeof iteration_).ok());
  }
  void commit(std::uint64_t expected) {
    for (VersionedArray* a : {u_, t_, w_}) {
      std::memset(a->working(), static_cast<int>(expected), a->size_bytes());
    }
    ASSERT_TRUE(w_->mark(0, w_->size_bytes()).ok());
    iteration_ = expected;
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
    ASSERT_EQ(committed.value(), expected);
  }
  void expect_contents(std::uint64_t version) {
    for (const VersionedArray* a : {u_, t_, w_}) {
      const std::byte* bytes = const_cast<VersionedArray*>(a)->consistent();
      EXPECT_EQ(bytes[0], static_cast<std::byte>(version)) << a->name();
      EXPECT_EQ(bytes[a->size_bytes() - 1], static_cast<std::byte>(version)) << a->name();
    }
    EXPECT_EQ(iteration_, version);
  }
  // "5<4 3<2*": newest first, * is abandoned.
  std::string listed() const {
    std::string text;
    for (const VersionInfo& info : pool_->versions()) {
      text += (text.empty() ? "" : " ") + std::to_string(info.version) + "<" +
              std::to_string(info.parent) + (info.abandoned ? "*" : "");
    }
    return text;
  }

  VersionedArray* u_ = nullptr;
  VersionedArray* t_ = nullptr;
  VersionedArray* w_ = nullptr;
  std::uint64_t iteration_ = 0;
};

TEST_F(Versions, are_kept_as_many_as_were_asked_for) {
  for (const std::uint32_t kept : {1U, 2U, 3U, 5U}) {
    image_.clear();
    keep(kept);
    open();
    open_all();
    EXPECT_EQ(pool_->keep(), kept);
    EXPECT_EQ(u_->copies(), kept + 1);
    ASSERT_EQ(pool_->restart().value(), 0U);
    EXPECT_EQ(listed(), "");
    for (std::uint64_t v = 1; v <= 8; ++v) commit(v);
    const auto versions = pool_->versions();
    ASSERT_EQ(versions.size(), kept);
    for (std::uint32_t i = 0; i < kept; ++i) {
      EXPECT_EQ(versions[i].version, 8 - i);
      EXPECT_EQ(versions[i].parent, 7 - i);
      EXPECT_GT(versions[i].committed_ns, 0U);
      EXPECT_FALSE(versions[i].abandoned);
    }
    for (std::uint32_t i = 0; i < kept; ++i) {  // each of them, in place of a restart
      reopen();
      open_all();
      ASSERT_EQ(pool_->versions().size(), kept);
      ASSERT_TRUE(pool_->restore(8 - i).ok());
      expect_contents(8 - i);
    }
    reopen();
    open_all();
    EXPECT_EQ(pool_->restore(8 - kept).code(), Code::not_found);
  }
}

// Levels name by them what they take again of a version that the pool already has.
TEST_F(Versions, leave_the_taker_the_incarnations_right_below) {
  keep(4);
  PoolOptions options;
  options.incarnations_of_taker = 16;
  open(options);
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  for (std::uint64_t v = 1; v <= 2; ++v) commit(v);
  const std::uint64_t first = pool_->incarnation();
  EXPECT_EQ(pool_->head_incarnation(), first);
  ASSERT_TRUE(pool_->restore(1).ok());
  EXPECT_EQ(pool_->incarnation(), first + 17);
  commit(3);
  crash();
  open(options);
  ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
  EXPECT_EQ(pool_->incarnation(), first + 34);
}

TEST_F(Versions, that_were_restored_are_the_newest_and_never_forgotten_again) {
  keep(4);
  open();
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  for (std::uint64_t v = 1; v <= 5; ++v) commit(v);
  ASSERT_TRUE(pool_->restore(3).ok());
  expect_contents(3);
  EXPECT_EQ(pool_->status().version, 3U);
  EXPECT_EQ(listed(), "5<4* 4<3* 3<2 2<1");
  reopen();  // right after the restore
  open_all();
  ASSERT_EQ(pool_->restart().value(), 3U);
  expect_contents(3);
  EXPECT_EQ(listed(), "5<4* 4<3* 3<2 2<1");
  commit(6);
  EXPECT_EQ(listed(), "6<3 5<4* 4<3* 3<2");
  commit(7);
  reopen();
  open_all();
  ASSERT_EQ(pool_->restart().value(), 7U);
  EXPECT_EQ(listed(), "7<6 6<3 5<4* 4<3*");
  ASSERT_TRUE(pool_->restore(5).ok());  // an abandoned one: a line of its own from there
  expect_contents(5);
  EXPECT_EQ(listed(), "7<6* 6<3* 5<4 4<3");
  commit(8);
  EXPECT_EQ(listed(), "8<5 7<6* 6<3* 5<4");
  reopen();
  open_all();
  ASSERT_EQ(pool_->restart().value(), 8U);
  expect_contents(8);
}

TEST_F(Versions, that_were_deleted_are_gone_and_the_newest_can_not_be) {
  keep(3);
  open();
  open_all();
  EXPECT_EQ(pool_->delete_version(1).code(), Code::wrong_state);  // before restart
  ASSERT_TRUE(pool_->restart().ok());
  for (std::uint64_t v = 1; v <= 4; ++v) commit(v);
  EXPECT_EQ(pool_->delete_version(4).code(), Code::wrong_state);
  EXPECT_EQ(pool_->delete_version(1).code(), Code::not_found);
  ASSERT_TRUE(pool_->delete_version(3).ok());
  EXPECT_EQ(pool_->delete_version(3).code(), Code::not_found);
  EXPECT_EQ(pool_->restore(3).code(), Code::not_found);
  EXPECT_EQ(listed(), "4<3 2<1");  // 2 is still an ancestor
  reopen();
  open_all();
  EXPECT_EQ(listed(), "4<3 2<1");
  ASSERT_EQ(pool_->restart().value(), 4U);
  EXPECT_EQ(listed(), "4<3 2<1");
  ASSERT_TRUE(pool_->restore(2).ok());
  ASSERT_TRUE(pool_->delete_version(4).ok());  // not the newest any more
  commit(5);
  EXPECT_EQ(listed(), "5<2");  // 6 will use the slot of 2
}

TEST_F(Versions, of_another_shape_or_damaged_leave_all_as_it_was) {
  keep(3);
  open();
  VersionedArray* a = array("a", shape(ArrayMode::copy, 100));
  ASSERT_TRUE(pool_->restart().ok());
  words(a)[0] = 1;
  ASSERT_TRUE(pool_->commit().ok());
  const std::uint64_t offset = a->copy_offset(a->consistent_copy());
  ASSERT_TRUE(pool_->close_array(a, true).ok());
  a = array("a", shape(ArrayMode::copy, 200));
  words(a)[0] = 2;
  ASSERT_TRUE(pool_->commit().ok());
  words(a)[0] = 3;
  EXPECT_EQ(pool_->restore(1).code(), Code::shape_mismatch);
  EXPECT_EQ(words(a)[0], 3);
  EXPECT_EQ(pool_->status().version, 2U);
  ASSERT_TRUE(pool_->close_array(a, true).ok());
  medium_->base()[offset + 5] ^= std::byte{1};
  a = array("b", shape(ArrayMode::copy, 100));
  words(a)[0] = 4;
  EXPECT_EQ(pool_->restore(1).code(), Code::damaged);
  EXPECT_EQ(words(a)[0], 4);
  EXPECT_EQ(pool_->commit().value(), 3U);
  medium_->base()[offset + 5] ^= std::byte{1};
  ASSERT_TRUE(pool_->restore(1).ok());  // b did not exist then
  EXPECT_EQ(words(a)[0], 0);
  a = array("a", shape(ArrayMode::copy, 100));
  EXPECT_EQ(words(a)[0], 1);
}

TEST_F(Versions, that_lack_an_array_or_scalar_give_zeros_and_nothing) {
  keep(4);
  open();
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  commit(1);
  VersionedArray* late = array("late", shape(ArrayMode::twin, 50));
  VersionedArray* flushed = array("flushed", shape(ArrayMode::flush, 50, false));
  std::uint64_t scalar = 7;
  ASSERT_TRUE(pool_->bind_scalar("late", &scalar, 8).ok());
  for (std::uint64_t v = 2; v <= 4; ++v) {
    words(late)[3] = words(flushed)[3] = static_cast<std::int64_t>(v);
    commit(v);
  }
  ASSERT_TRUE(pool_->restore(1).ok());
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(late->consistent())[3], 0);
  EXPECT_NE(late->consistent(), late->working());
  EXPECT_EQ(words(flushed)[3], 4);
  EXPECT_EQ(scalar, 7U);
  std::memset(late->working(), 255, late->size_bytes());
  medium_->flush(late->copy_offset(0), 5 * late->size_bytes());
  ASSERT_TRUE(medium_->fence().ok());
  for (const std::uint64_t version : {2U, 3U, 4U}) {  // they were not stored over
    ASSERT_TRUE(pool_->restore(version).ok());
    EXPECT_EQ(reinterpret_cast<const std::int64_t*>(late->consistent())[3],
              static_cast<std::int64_t>(version));
    expect_contents(version);
  }
}

// The version under way then names the copy that the one before it named.
TEST_F(Versions, keep_what_they_hold_of_arrays_that_were_opened_while_they_were_made) {
  keep(3);
  open();
  VersionedArray* late = array("late", shape(ArrayMode::twin, 50, false));
  ASSERT_TRUE(pool_->restart().ok());
  const auto commit_late = [&](std::int64_t value) {
    std::fill_n(words(late), 50, value);
    ASSERT_TRUE(pool_->commit().ok());
  };
  commit_late(1);
  commit_late(2);
  ASSERT_TRUE(pool_->close_array(late, false).ok());
  ASSERT_TRUE(pool_->commit_begin().ok());
  late = array("late", shape(ArrayMode::twin, 50, false));
  ASSERT_NE(late, nullptr) << status_.message();
  ASSERT_EQ(pool_->commit_wait().value(), 3U);
  commit_late(4);
  commit_late(5);
  std::fill_n(words(late), 50, 9);  // of the next version
  ASSERT_TRUE(pool_->restore(3).ok());
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(late->consistent())[0], 2);
}

// Opens, closes, commits, restores, deletes and crashes at random, beside a plain list of what each
// version held. Frozen arrays and other lines make copies fall out of step with version numbers.
class RandomVersions : public Versions {
 protected:
  using Contents = std::map<std::string, std::int64_t>;  // the word in all of an array

  void run(std::uint32_t kept, std::uint64_t seed, int steps) {
    image_.clear();
    history_.clear();
    opened_.clear();
    now_.clear();
    keep(kept);
    std::mt19937_64 random(seed);
    open();
    ASSERT_TRUE(pool_->restart().ok());
    for (int step = 0; step < steps && !HasFatalFailure(); ++step) {
      const std::uint64_t draw = random() % 10;
      const char* name = std::array{"a", "b", "c"}[random() % 3];
      if (draw < 2) open_or_close(name, random() % 3 == 0);
      if (draw == 2) restore(random());
      if (draw == 3) erase(random());
      if (draw == 4) crash_and_restart();
      if (draw > 4) commit_all();
    }
  }

 private:
  void open_or_close(const std::string& name, bool erase) {
    VersionedArray*& a = opened_[name];
    if (a != nullptr) {
      ASSERT_TRUE(pool_->close_array(a, erase).ok());
      if (erase) now_.erase(name);
      a = nullptr;
      return;
    }
    ArrayOptions options;
    options.compare = name == "c";
    const ArrayMode mode = name == "a"   ? ArrayMode::twin
                           : name == "b" ? ArrayMode::copy
                                         : ArrayMode::log;
    a = array(name, shape(mode, 20), options);
    ASSERT_NE(a, nullptr) << status_.message();
    expect_now();
  }
  void restore(std::uint64_t draw) {
    const auto versions = pool_->versions();
    if (versions.empty()) return;
    const std::uint64_t target = versions[draw % versions.size()].version;
    const Status restored = pool_->restore(target);
    ASSERT_TRUE(restored.ok()) << restored.message();
    now_ = history_.at(target);
    expect_now();
  }
  void erase(std::uint64_t draw) {
    const auto versions = pool_->versions();
    if (versions.empty()) return;
    const std::uint64_t target = versions[draw % versions.size()].version;
    ASSERT_EQ(pool_->delete_version(target).ok(), target != pool_->status().version);
  }
  void crash_and_restart() {
    const std::uint64_t version = pool_->status().version;
    reopen();
    ASSERT_EQ(pool_->restart().value(), version);
    opened_.clear();
    now_ = version == 0 ? Contents{} : history_.at(version);
  }
  void commit_all() {
    ++stamp_;
    for (const auto& [name, a] : opened_) {
      if (a == nullptr) continue;
      std::fill_n(words(a), 20, stamp_);
      now_[name] = stamp_;
    }
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
    ASSERT_FALSE(history_.contains(committed.value())) << "a number was given again";
    history_[committed.value()] = now_;
  }
  void expect_now() {
    for (const auto& [name, a] : opened_) {
      if (a == nullptr) continue;
      const auto* contents = reinterpret_cast<const std::int64_t*>(a->consistent());
      const std::int64_t expected = now_.contains(name) ? now_[name] : 0;
      ASSERT_EQ(contents[0], expected) << name;
      ASSERT_EQ(contents[19], expected) << name;
    }
  }

  std::map<std::uint64_t, Contents> history_;
  std::map<std::string, VersionedArray*> opened_;
  Contents now_;
  std::int64_t stamp_ = 0;
};

TEST_F(RandomVersions, stay_whole_whatever_is_done_between_them) {
  for (const std::uint32_t kept : {1U, 2U, 3U, 6U}) run(kept, test_seed(), 400);
}

}  // namespace
}  // namespace perdure
