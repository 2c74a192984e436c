// SPDX-License-Identifier: BSD-3-Clause
//
// More arrays than a slot has room for: they come back, cost what changed, and lack no room later.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "pool/copy_check.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t large_device = 4 << 20;

class ManyArrays : public PoolTest {
 protected:
  ManyArrays() {
    geometry_ = {1024, 64, 64};
    device_max_ = large_device;
  }
  VersionedArray* marked(std::uint64_t number) {
    ArrayOptions options;
    options.marks = true;
    return array("node " + std::to_string(number), shape(ArrayMode::log, 2), options);
  }
  void put(VersionedArray* into, std::int64_t value) {
    words(into)[1] = value;
    ASSERT_TRUE(into->mark(8, 8).ok());
  }
  std::uint64_t bytes_of_a_commit() {
    const DeviceCounters before = medium_->counters();
    EXPECT_TRUE(pool_->commit().ok());
    const DeviceCounters after = medium_->counters();
    return after.stored_bytes + after.copied_bytes - before.stored_bytes - before.copied_bytes;
  }
};

TEST_F(ManyArrays, come_back_and_a_commit_stores_what_changed) {
  std::vector<VersionedArray*> arrays;
  std::map<std::size_t, std::uint64_t> bytes_with;
  open();
  ASSERT_TRUE(pool_->restart().ok());
  for (const std::size_t count : {30U, 300U, 3000U}) {
    while (arrays.size() < count) {
      arrays.push_back(marked(arrays.size()));
      ASSERT_NE(arrays.back(), nullptr) << status_.message();
      put(arrays.back(), static_cast<std::int64_t>(arrays.size()));
    }
    EXPECT_GT(bytes_of_a_commit(), count * 160);  // each of them, and its entry
    put(arrays[count / 2], -1);
    bytes_with[count] = bytes_of_a_commit();
    EXPECT_LT(bytes_of_a_commit(), 256U);  // a body and two state words
  }
  // A page for each branch more, and nothing else.
  EXPECT_LE(bytes_with[3000], bytes_with[30] + 2 * catalogue_page_bytes);
  crash();
  open();
  ASSERT_TRUE(pool_->restart().ok());
  for (std::size_t i = 0; i < 3000; ++i) {
    VersionedArray* again = marked(i);
    ASSERT_NE(again, nullptr) << status_.message();
    const bool changed = i == 15 || i == 150 || i == 1500;
    ASSERT_EQ(words(again)[1], changed ? -1 : static_cast<std::int64_t>(i + 1)) << i;
  }
  EXPECT_LT(bytes_of_a_commit(), 256U);
}

TEST_F(ManyArrays, go_back_into_the_slot_when_most_are_erased) {
  open();
  ASSERT_TRUE(pool_->restart().ok());
  std::vector<VersionedArray*> arrays;
  for (std::uint64_t i = 0; i < 500; ++i) arrays.push_back(marked(i));
  ASSERT_TRUE(pool_->commit().ok());
  const std::uint64_t size = medium_->size_bytes();
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t i = 3; i < 500; ++i) {
      ASSERT_TRUE(pool_->close_array(arrays[i], true).ok());
    }
    put(arrays[1], round);
    ASSERT_TRUE(pool_->commit().ok());
    ASSERT_TRUE(pool_->commit().ok());  // no slot names what was erased
    crash();
    open();
    ASSERT_TRUE(pool_->restart().ok());
    arrays.clear();
    for (std::uint64_t i = 0; i < 500; ++i) arrays.push_back(marked(i));
    EXPECT_EQ(words(arrays[1])[1], round);
    EXPECT_EQ(words(arrays[400])[1], 0);
    put(arrays[400], 7);
    ASSERT_TRUE(pool_->commit().ok());
  }
  EXPECT_EQ(medium_->size_bytes(), size);
}

TEST_F(ManyArrays, lack_no_room_after_they_were_opened) {
  geometry_.slots = 4;
  device_max_ = 512 << 10;
  open();
  ASSERT_TRUE(pool_->restart().ok());
  std::vector<VersionedArray*> arrays;
  for (VersionedArray* next = marked(0); next != nullptr; next = marked(arrays.size())) {
    arrays.push_back(next);
    ASSERT_LT(arrays.size(), 5000U);
  }
  EXPECT_EQ(status_.code(), Code::no_space) << status_.message();
  EXPECT_GT(arrays.size(), 100U);
  for (int version = 1; version < 12; ++version) {
    for (VersionedArray* each : arrays) put(each, version);
    ASSERT_TRUE(pool_->commit().ok());
  }
  crash();
  open();
  ASSERT_TRUE(pool_->restart().ok());
  for (std::uint64_t i = 0; i < arrays.size(); ++i) {
    arrays[i] = marked(i);
    ASSERT_NE(arrays[i], nullptr) << status_.message();
    put(arrays[i], 99);
  }
  for (int version = 1; version < 6; ++version) {
    for (VersionedArray* each : arrays) put(each, version);
    ASSERT_TRUE(pool_->commit().ok()) << version;
  }
}

TEST_F(ManyArrays, a_damaged_page_of_the_tree_is_named) {
  open();
  ASSERT_TRUE(pool_->restart().ok());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_NE(marked(i), nullptr);
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  std::size_t at = 0;
  const std::string name = "node 77";
  while (std::memcmp(&image_[at], name.data(), name.size()) != 0) ++at;
  image_[at] ^= std::byte{1};
  open();
  EXPECT_EQ(attach_status_.code(), Code::damaged);
  const std::string page = std::to_string(at / catalogue_page_bytes * catalogue_page_bytes);
  EXPECT_NE(attach_status_.message().find("page at byte " + page + " is damaged"),
            std::string::npos)
      << attach_status_.message();
}

// Blocks that are marked when a version has saved them already are the next one's.
TEST_F(ManyArrays, marks_of_a_version_under_way_are_kept_for_the_next) {
  const auto open_u = [this] {
    open();
    ArrayOptions options;
    options.marks = true;
    VersionedArray* opened = array("u", shape(ArrayMode::log, 32), options);  // four blocks
    EXPECT_TRUE(pool_->restart().ok());
    return opened;
  };
  VersionedArray* u = open_u();
  for (int version = 1; version <= 9; ++version) {
    put(u, version);
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->before_write(*u).ok());
    if (version % 3 == 0) put(u, 100 + version);
    ASSERT_TRUE(pool_->commit_wait().ok());
    if (version % 3 == 0) {
      ASSERT_TRUE(pool_->commit().ok());
      ASSERT_TRUE(pool_->commit().ok());
      words(u)[20] = version;
      ASSERT_TRUE(u->mark(160, 8).ok());
      ASSERT_TRUE(pool_->commit().ok());
      crash();
      u = open_u();
      ASSERT_EQ(words(u)[1], 100 + version);
      ASSERT_EQ(words(u)[20], version);
    }
  }
}

// A run in which an array is changed by some versions, and not by others, for which it may be
// closed. After each commit all versions that are kept hold what they held.
class Idle : public ManyArrays {
 protected:
  Idle() {
    geometry_.slots = 5;
    device_max_ = 32 << 10;
  }
  void check_kept() {
    const auto region = check_region(*medium_);
    const Slots slots(*medium_, region.value());
    for (const VersionInfo& info : pool_->versions()) {
      const SlotView view = slots.read(slots.slot_of(info.version));
      ASSERT_TRUE(view.body.has_value()) << view.problem;
      const auto entry = view.body->find_array("node 0");
      std::int64_t found[2] = {};
      const Status read = verify_and_copy(*medium_, *entry, geometry_.block_bytes,
                                          reinterpret_cast<std::byte*>(found), nullptr);
      ASSERT_TRUE(read.ok()) << read.message();
      ASSERT_EQ(found[1], held_[info.version]) << "version " << info.version;
    }
  }
  // Bit i of `pattern`: version i + 1 changes it.
  void run(unsigned pattern, bool closes) {
    image_.clear();
    open();
    ASSERT_TRUE(pool_->restart().ok());
    VersionedArray* u = marked(0);
    std::int64_t value = 0;
    for (unsigned step = 0; step < 11; ++step) {
      const bool changed = (pattern >> step & 1) != 0;
      if (changed) put(u, ++value);
      const bool closed = closes && !changed && step != 0;
      if (closed) {
        ASSERT_TRUE(pool_->close_array(u, false).ok());
      }
      held_[pool_->commit().value()] = value;
      check_kept();
      if (closed) u = marked(0);
      ASSERT_EQ(words(u)[1], value);
    }
  }
  std::map<std::uint64_t, std::int64_t> held_;
};

TEST_F(Idle, arrays_leave_the_versions_that_are_kept_alone) {
  for (unsigned pattern = 0; pattern < 2048 && !HasFatalFailure(); pattern += 5) {
    run(pattern, false);
  }
}

TEST_F(Idle, and_closed_arrays_leave_the_versions_that_are_kept_alone) {
  for (unsigned pattern = 0; pattern < 2048 && !HasFatalFailure(); pattern += 5) run(pattern, true);
}

// Any sequence of calls, against a map for each version.
class AnyCalls : public ManyArrays, public testing::WithParamInterface<std::uint32_t> {
 protected:
  using Contents = std::map<std::uint64_t, std::int64_t>;  // by number; all that exist

  void start() {
    open();
    ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
    arrays_.clear();
    const auto restarted = pool_->restart();
    ASSERT_TRUE(restarted.ok()) << restarted.status().message();
    ASSERT_EQ(restarted.value(), head_);
    now_ = versions_[head_];
    erased_.clear();
  }
  void open_one(std::uint64_t number) {
    if (arrays_.contains(number)) return;
    VersionedArray* opened = marked(number);
    ASSERT_NE(opened, nullptr) << status_.message();
    arrays_[number] = opened;
    const bool held = now_.contains(number);
    ASSERT_EQ(words(opened)[1], held ? now_[number] : 0) << number;
    now_.emplace(number, 0);
  }
  void close_one(std::uint64_t number, bool erase) {
    if (!arrays_.contains(number)) return;
    ASSERT_TRUE(pool_->close_array(arrays_[number], erase).ok());
    arrays_.erase(number);
    now_.erase(number);
    const Contents& head = versions_[head_];  // what is kept is what was committed
    if (!erase && head.contains(number) && !erased_.contains(number)) {
      now_[number] = head.at(number);
    } else {
      erased_.insert(number);
    }
  }
  void commit() {
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
    head_ = committed.value();
    versions_[head_] = now_;
    erased_.clear();
  }
  void check_open() {
    for (const auto& [number, opened] : arrays_) ASSERT_EQ(words(opened)[1], now_[number]);
  }
  void restore(std::uint64_t version) {
    ASSERT_TRUE(pool_->restore(version).ok());
    head_ = version;
    now_ = versions_[version];
    erased_.clear();
    for (const auto& [number, opened] : arrays_) now_.emplace(number, 0);
    check_open();
  }
  void act(std::mt19937_64& random) {
    // A few are changed by many versions that are kept together, and the others by none of them.
    const std::uint64_t number = random() % (random() % 4 == 0 ? 300 : 8);
    switch (random() % 16) {
      case 0:
        return commit();
      case 1:
        return close_one(number, random() % 2 == 0);
      case 2: {
        const auto held = pool_->versions();
        if (random() % 4 == 0 && !held.empty()) restore(held[random() % held.size()].version);
        return;
      }
      case 3: {
        const auto held = pool_->versions();
        const std::uint64_t version = held.empty() ? 0 : held.back().version;
        if (random() % 4 != 0 || version == 0 || version == head_) return;
        ASSERT_TRUE(pool_->delete_version(version).ok());
        return;
      }
      case 4:
        if (random() % 8 != 0) return;
        crash();
        return start();
      case 5:
        for (std::uint64_t i = 0; i < 40; ++i) open_one((number + i) % 300);
        return;
      case 6:
        for (std::uint64_t i = 0; i < 40; ++i) close_one((number + i) % 300, true);
        return;
      default:
        open_one(number);
        if (testing::Test::HasFatalFailure()) return;
        now_[number] = static_cast<std::int64_t>(random() >> 1);
        put(arrays_[number], now_[number]);
    }
  }

  std::map<std::uint64_t, VersionedArray*> arrays_;
  std::map<std::uint64_t, Contents> versions_;
  std::set<std::uint64_t> erased_;  // since the head
  Contents now_;
  std::uint64_t head_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Slots, AnyCalls, testing::Values(2U, 3U, 5U));

TEST_P(AnyCalls, leave_in_each_version_what_was_committed) {
  geometry_.slots = GetParam();
  geometry_.slot_bytes = 2048;  // some 12 arrays
  device_max_ = 1 << 20;
  std::mt19937_64 random(test_seed());
  start();
  for (int step = 0; step < 2000 && !HasFatalFailure(); ++step) act(random);
  if (HasFatalFailure()) return;
  for (const VersionInfo& held : pool_->versions()) restore(held.version);
  commit();
  crash();
  start();
  for (std::uint64_t i = 0; i < 300; ++i) open_one(i);
}

}  // namespace
}  // namespace perdure
