// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays of a pool: names and parts, empty ones, flush mode, comparing, staging, closing.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

#include "pool/block_checksum.hpp"
#include "pool/extents.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "pool/testing/words.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

class Arrays : public PoolTest {
 protected:
  static constexpr ArrayOptions compared(std::uint32_t part = 0) {
    ArrayOptions options;
    options.compare = true;
    options.part = part;
    return options;
  }
  static constexpr ArrayOptions staged() {
    ArrayOptions options;
    options.staged = true;
    return options;
  }
  void restart(std::uint64_t expected) {
    const auto restored = pool_->restart();
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    EXPECT_EQ(restored.value(), expected);
  }
  void commit() {
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
  }
};

// As if another array had been damaged, or a file was missing that the program then brings back.
TEST_F(Arrays, that_are_new_keep_what_buffers_hold_when_a_restart_fails_and_the_next_succeeds) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log}) {
    pool_.reset();
    image_.clear();
    open();
    Words given = words_of(1, 1000);
    Words other(1000);
    ArrayOptions options;
    options.keep_contents = true;
    options.buffer = given.data();
    ASSERT_NE(array("u", shape(mode), options), nullptr) << status_.message();
    options.buffer = other.data();
    VersionedArray* const lost = array("v", shape(mode), options);
    ASSERT_NE(lost, nullptr) << status_.message();
    lost->lose_buffer("freed");
    EXPECT_EQ(pool_->restart().status().code(), Code::wrong_state);
    ASSERT_TRUE(pool_->close_array(lost, false).ok());
    restart(0);
    EXPECT_EQ(given, words_of(1, 1000));
    commit();
    crash();
    open();
    VersionedArray* const held = array("u", shape(mode));
    ASSERT_NE(held, nullptr) << status_.message();
    restart(1);
    EXPECT_EQ(std::memcmp(held->consistent(), given.data(), 8000), 0);
  }
}

TEST_F(Arrays, parts_of_one_name_are_arrays_of_their_own) {
  open();
  const std::string name = "a window/\u00fc\n of its own";
  for (std::uint32_t part = 0; part < 3; ++part) {
    VersionedArray* a = array(name, shape(ArrayMode::log, 10 + part), compared(part));
    ASSERT_NE(a, nullptr) << status_.message();
    EXPECT_EQ(a->part(), part);
  }
  EXPECT_EQ(array(name, shape(ArrayMode::log, 11), compared(1)), nullptr);  // it is open
  restart(0);
  commit();
  crash();
  open();
  VersionedArray* second = array(name, shape(ArrayMode::log, 11), compared(1));
  ASSERT_NE(second, nullptr) << status_.message();
  EXPECT_EQ(array(name, shape(ArrayMode::log, 11), compared(2)), nullptr);
  EXPECT_EQ(status_.code(), Code::shape_mismatch);
  EXPECT_NE(status_.message().find("\\x0a"), std::string::npos) << status_.message();
  restart(1);
}

TEST_F(Arrays, of_no_bytes_are_kept_in_every_mode) {
  for (int run = 0; run < 2; ++run) {
    open();
    std::vector<VersionedArray*> all = {array("copy", shape(ArrayMode::copy, 0)),
                                        array("twin", shape(ArrayMode::twin, 0, false)),
                                        array("log", shape(ArrayMode::log, 0)),
                                        array("marks", shape(ArrayMode::log, 0), {nullptr, true}),
                                        array("compare", shape(ArrayMode::log, 0), compared()),
                                        array("flush", shape(ArrayMode::flush, 0, false)),
                                        array("staged", shape(ArrayMode::copy, 0), staged())};
    restart(static_cast<std::uint64_t>(run * 3));
    for (int v = 0; v < 3; ++v) commit();
    for (VersionedArray* a : all) {
      ASSERT_NE(a, nullptr);
      EXPECT_EQ(a->size_bytes(), 0U);
      EXPECT_NE(a->working(), nullptr);
      if (a->copies() > 1) {
        EXPECT_NE(a->working_copy(), a->consistent_copy());
      }
      for (const VersionedArray* other : all) {  // empty or not, arrays are distinguished
        EXPECT_EQ(a == other, a->copy_offset(0) == other->copy_offset(0));
      }
    }
    crash();
  }
}

TEST_F(Arrays, in_flush_mode_hold_what_had_reached_the_medium) {
  open();
  VersionedArray* f = array("f", shape(ArrayMode::flush, 100, false));
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->copies(), 1U);
  restart(0);
  words(f)[3] = 33;
  words(u)[3] = 33;
  commit();
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(f->consistent())[3], 33);
  words(f)[3] = 34;  // reaches the medium without a commit
  words(u)[3] = 34;
  medium_->flush(f->copy_offset(0), f->size_bytes());
  ASSERT_TRUE(medium_->fence().ok());
  words(f)[4] = 44;  // does not
  crash();
  open();
  f = array("f", shape(ArrayMode::flush, 100, false));
  u = array("u", shape(ArrayMode::copy, 100));
  restart(1);
  EXPECT_EQ(words(f)[3], 34);
  EXPECT_EQ(words(f)[4], 0);
  EXPECT_EQ(words(u)[3], 33);
}

TEST_F(Arrays, that_are_compared_save_what_differs_and_nothing_else) {
  open();
  std::vector<std::int64_t> buffer(512 * 10 + 1, 1);
  ArrayOptions options = compared();
  options.buffer = reinterpret_cast<std::byte*>(buffer.data()) + 4;  // of any alignment
  VersionedArray* u = array("u", shape(ArrayMode::log, 512 * 10), options);
  ASSERT_NE(u, nullptr) << status_.message();
  restart(0);
  commit();
  commit();
  const std::uint64_t before = pool_->status().committed_bytes;
  u->working()[4096 * 3] = std::byte{7};
  u->working()[4096 * 10 - 1] = std::byte{9};
  commit();
  constexpr std::uint64_t page_bytes = 4096 / pages_per_block;
  EXPECT_EQ(pool_->status().committed_bytes - before, 2 * page_bytes);
  commit();  // the other copy lacks the same pages
  EXPECT_EQ(pool_->status().committed_bytes - before, 4 * page_bytes);
  commit();
  EXPECT_EQ(pool_->status().committed_bytes - before, 4 * page_bytes);
  crash();
  open();
  std::fill(buffer.begin(), buffer.end(), 5);
  u = array("u", shape(ArrayMode::log, 512 * 10), options);
  restart(5);
  EXPECT_EQ(u->working()[4096 * 3], std::byte{7});
  EXPECT_EQ(u->working()[4096 * 10 - 1], std::byte{9});
  EXPECT_EQ(u->working()[0], std::byte{0});
}

// What a commit that failed has stored may not be durable, though it compares equal.
TEST_F(Arrays, that_are_compared_are_saved_again_after_a_commit_that_failed) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::log, 1000), compared());
  restart(0);
  commit();
  commit();
  words(u)[5] = 5;
  medium_->failing_fence = medium_->counters().fence_calls + 1;
  EXPECT_EQ(pool_->commit().status().code(), Code::io_error);
  const std::uint64_t before = medium_->counters().copied_bytes;
  commit();
  EXPECT_GE(medium_->counters().copied_bytes - before, 4096 / pages_per_block);
  crash();
  open();
  u = array("u", shape(ArrayMode::log, 1000), compared());
  restart(3);
  EXPECT_EQ(words(u)[5], 5);
}

TEST_F(Arrays, refuse_options_that_contradict_their_mode) {
  open();
  alignas(4096) static std::int64_t buffer[4096];
  ArrayOptions with_buffer;
  with_buffer.buffer = buffer + 1;  // not a page's
  ArrayOptions both = compared();
  both.marks = true;
  const std::pair<ArrayShape, ArrayOptions> wrong[] = {
      {shape(ArrayMode::copy, 10), compared()},  {shape(ArrayMode::log, 10), both},
      {shape(ArrayMode::twin, 10), with_buffer}, {shape(ArrayMode::flush, 10, false), with_buffer},
      {shape(ArrayMode::flush, 10, true), {}},   {shape(ArrayMode::twin, 10), staged()},
      {shape(ArrayMode::log, 10), staged()}};
  for (const auto& [its_shape, options] : wrong) {
    EXPECT_EQ(array("u", its_shape, options), nullptr) << its_shape.text();
    EXPECT_EQ(status_.code(), Code::invalid_argument) << its_shape.text();
  }
  EXPECT_NE(array("u", shape(ArrayMode::log, 10), compared()), nullptr);  // nothing half made
}

TEST_F(Arrays, track_changes_of_whole_pages_that_the_application_gave) {
  constexpr std::uint64_t words_of_buffer = 8192;
  alignas(4096) static std::int64_t buffer[words_of_buffer];
  buffer[0] = 7;
  ArrayOptions given;
  given.buffer = buffer;
  given.keep_contents = true;
  open();
  VersionedArray* u = array("u", shape(ArrayMode::log, words_of_buffer), given);
  ASSERT_NE(u, nullptr) << status_.message();
  restart(0);
  for (int version = 0; version < 3; ++version) commit();  // all copies have all blocks
  EXPECT_EQ(u->working(), reinterpret_cast<std::byte*>(buffer));
  const std::uint64_t before = pool_->status().committed_bytes;
  buffer[600] = 8;
  commit();
  const std::uint64_t changed = pool_->status().committed_bytes - before;
  EXPECT_GT(changed, 0U);
  EXPECT_LT(changed, sizeof buffer);
  crash();
  std::fill(std::begin(buffer), std::end(buffer), -1);
  open();
  array("u", shape(ArrayMode::log, words_of_buffer), given);
  restart(4);
  EXPECT_EQ(buffer[0], 7);
  EXPECT_EQ(buffer[600], 8);
}

TEST_F(Arrays, that_are_closed_keep_what_was_committed_last) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::twin, 100));
  array("v", shape(ArrayMode::copy, 100));
  restart(0);
  words(u)[1] = 1;
  commit();
  words(u)[1] = 2;  // never committed
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  EXPECT_EQ(pool_->close_array(u, false).code(), Code::invalid_argument);
  for (int v = 0; v < 5; ++v) commit();
  u = array("u", shape(ArrayMode::twin, 100));  // in the same run
  ASSERT_NE(u, nullptr) << status_.message();
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(u->consistent())[1], 1);
  words(u)[1] = 3;
  commit();
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  commit();
  crash();
  open();
  u = array("u", shape(ArrayMode::twin, 100));
  restart(8);
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(u->consistent())[1], 3);
}

// As on another processor, whose fastest checksum is another one.
TEST_F(Arrays, keep_the_kind_of_checksum_that_they_were_made_with) {
  for (const char* made_with : {"crc64", "xxh3"}) {
    image_.clear();
    ::setenv("PERDURE_CHECKSUM", made_with, 1);
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy));
    restart(0);
    words(u)[7] = 1;
    commit();
    crash();
    ::setenv("PERDURE_CHECKSUM", std::string(made_with) == "crc64" ? "xxh3" : "crc64", 1);
    open();
    u = array("u", shape(ArrayMode::copy));
    VersionedArray* v = array("v", shape(ArrayMode::copy));
    restart(1);
    EXPECT_NE(u->entry().checksum, v->entry().checksum);
    words(u)[7] = 2;
    words(v)[7] = 3;
    commit();
    crash();
    open();
    u = array("u", shape(ArrayMode::copy));
    v = array("v", shape(ArrayMode::copy));
    restart(2);
    EXPECT_EQ(words(u)[7], 2);
    EXPECT_EQ(words(v)[7], 3);
    image_.assign(medium_->durable().begin(), medium_->durable().end());
    image_[u->entry().copy_offset(u->entry().copy) + 100] ^= std::byte{1};
    pool_.reset();
    open();
    array("u", shape(ArrayMode::copy));
    array("v", shape(ArrayMode::copy));
    EXPECT_EQ(pool_->restart().status().code(), Code::damaged) << made_with;
    pool_.reset();
  }
  ::setenv("PERDURE_CHECKSUM", "sha", 1);
  image_.clear();
  open();
  EXPECT_EQ(array("u", shape(ArrayMode::copy)), nullptr);
  EXPECT_NE(status_.message().find("neither crc64 nor xxh3"), std::string::npos);
  ::unsetenv("PERDURE_CHECKSUM");
}

TEST_F(Arrays, that_were_never_committed_are_gone_when_closed) {
  open();
  restart(0);
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  words(u)[1] = 1;
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  commit();
  u = array("u", shape(ArrayMode::copy, 200));  // the name is free, for any shape
  ASSERT_NE(u, nullptr) << status_.message();
  EXPECT_EQ(words(u)[1], 0);
}

TEST_F(Arrays, that_are_erased_give_their_room_back_when_no_version_needs_it) {
  open();
  restart(0);
  std::uint64_t size_bytes = 0;
  std::int64_t stamp = 100;
  for (int round = 0; round < 20; ++round) {
    VersionedArray* u = array("u", shape(ArrayMode::twin, 1000));
    ASSERT_NE(u, nullptr) << status_.message();
    EXPECT_EQ(words(u)[999], 0);
    words(u)[999] = ++stamp;
    commit();
    ASSERT_TRUE(pool_->close_array(u, true).ok());
    if (round == 5) size_bytes = medium_->size_bytes();
    if (round % 3 == 0) commit();
  }
  EXPECT_EQ(medium_->size_bytes(), size_bytes);  // three arrays' extents at most
  // The newest version holds u; erasing it is not durable before the next one.
  const std::int64_t last = stamp;
  VersionedArray* u = array("u", shape(ArrayMode::twin, 1000));
  std::memset(u->working(), 255, u->size_bytes());
  medium_->flush(u->copy_offset(0), 2 * u->size_bytes());
  ASSERT_TRUE(medium_->fence().ok());
  crash();
  open();
  u = array("u", shape(ArrayMode::twin, 1000));
  ASSERT_TRUE(pool_->restart().ok());
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(u->consistent())[999], last);
}

TEST_F(Arrays, that_are_erased_and_made_anew_do_not_come_back_when_they_are_closed) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  restart(0);
  words(u)[0] = 1;
  commit();
  ASSERT_TRUE(pool_->close_array(u, true).ok());
  u = array("u", shape(ArrayMode::copy, 100));
  EXPECT_EQ(words(u)[0], 0);
  ASSERT_TRUE(pool_->close_array(u, false).ok());  // it was never committed
  EXPECT_EQ(pool_->held_shape("u"), nullptr);
  commit();
  crash();
  open();
  EXPECT_EQ(pool_->held_shape("u"), nullptr);
}

TEST_F(Arrays, that_are_opened_during_a_commit_are_not_part_of_it) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  restart(0);
  words(u)[0] = 1;
  ASSERT_TRUE(pool_->commit_begin().ok());
  VersionedArray* late = array("late", shape(ArrayMode::twin, 100));
  ASSERT_NE(late, nullptr);
  words(late)[0] = 7;
  std::uint64_t scalar = 9;
  ASSERT_TRUE(pool_->bind_scalar("iteration", &scalar, sizeof scalar).ok());
  EXPECT_EQ(pool_->commit_wait().value(), 1U);
  EXPECT_EQ(words(late)[0], 7);  // its working copy stays
  crash();
  open();
  array("u", shape(ArrayMode::copy, 100));
  late = array("late", shape(ArrayMode::copy, 5));  // version 1 does not know the name
  ASSERT_NE(late, nullptr) << status_.message();
  restart(1);
}

TEST_F(Arrays, that_are_closed_during_a_commit_are_part_of_it) {
  for (const bool erase : {false, true}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy, 20000));
    restart(0);
    words(u)[19999] = 1;
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->close_array(u, erase).ok());
    VersionedArray* again = array("u", shape(erase ? ArrayMode::twin : ArrayMode::copy, 20000));
    if (erase) {
      ASSERT_NE(again, nullptr) << status_.message();
      std::memset(again->working(), 255, again->size_bytes());
      medium_->flush(again->copy_offset(0), 2 * again->size_bytes());
      ASSERT_TRUE(medium_->fence().ok());
    } else {
      EXPECT_EQ(status_.code(), Code::wrong_state);
    }
    EXPECT_EQ(pool_->commit_wait().value(), 1U);
    crash();
    open();
    u = array("u", shape(ArrayMode::copy, 20000));
    restart(1);
    EXPECT_EQ(words(u)[19999], 1);
  }
}

TEST_F(Arrays, that_are_closed_during_a_commit_that_fails_stay_as_they_were) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  restart(0);
  words(u)[0] = 1;
  commit();
  VersionedArray* fresh = array("fresh", shape(ArrayMode::copy, 100));
  words(u)[0] = 2;
  medium_->failing_fence = medium_->counters().fence_calls + 3;  // the state word's
  ASSERT_TRUE(pool_->commit_begin().ok());
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  ASSERT_TRUE(pool_->close_array(fresh, false).ok());
  EXPECT_FALSE(pool_->commit_wait().ok());
  u = array("u", shape(ArrayMode::copy, 100));
  ASSERT_NE(u, nullptr) << status_.message();
  EXPECT_EQ(words(u)[0], 1);
  fresh = array("fresh", shape(ArrayMode::copy, 5));  // it never came to be
  ASSERT_NE(fresh, nullptr) << status_.message();
  commit();
}

// The number of the commit that failed is not that of a version that holds them.
TEST_F(Arrays, that_are_closed_after_a_commit_that_failed_stay_in_the_versions) {
  open();
  restart(0);
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  words(u)[0] = 1;
  commit();
  EXPECT_FALSE(pool_->commit({Code::io_error, "refused"}).ok());
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  commit();
  crash();
  open();
  ASSERT_NE(pool_->held_shape("u"), nullptr);
  u = array("u", shape(ArrayMode::copy, 100));
  restart(2);
  EXPECT_EQ(words(u)[0], 1);
}

TEST_F(Arrays, that_were_erased_do_not_come_back_for_new_ones_whose_commit_failed) {
  open();
  restart(0);
  VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
  words(u)[0] = 1;
  commit();
  ASSERT_TRUE(pool_->close_array(u, true).ok());
  u = array("u", shape(ArrayMode::copy, 100));
  medium_->failing_fence = medium_->counters().fence_calls + 2;
  ASSERT_TRUE(pool_->commit_begin().ok());
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  EXPECT_FALSE(pool_->commit_wait().ok());
  EXPECT_EQ(pool_->held_shape("u"), nullptr);
  commit();
  u = array("u", shape(ArrayMode::copy, 100));
  EXPECT_EQ(words(u)[0], 0);
}

TEST_F(Arrays, that_are_marked_and_closed_during_a_commit_that_fails_are_not_asked_again) {
  open();
  VersionedArray* w = array("w", shape(ArrayMode::log, 100), {nullptr, true});
  restart(0);
  medium_->failing_fence = medium_->counters().fence_calls + 2;
  ASSERT_TRUE(pool_->commit_begin().ok());
  ASSERT_TRUE(pool_->close_array(w, true).ok());
  EXPECT_FALSE(pool_->commit_wait().ok());
  commit();
}

TEST_F(Arrays, that_are_closed_during_a_commit_leave_their_buffers_to_others) {
  constexpr std::uint64_t bytes = 80'000;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const TrackerKind tracker : {TrackerKind::chosen, TrackerKind::faults}) {
    image_.clear();
    open();
    ArrayOptions options;
    options.buffer = memory;
    options.tracker = tracker;
    VersionedArray* u = array("u", shape(ArrayMode::log, bytes / 8), options);
    restart(0);
    ASSERT_TRUE(pool_->commit_begin().ok());
    ASSERT_TRUE(pool_->close_array(u, true).ok());
    VersionedArray* w = array("w", shape(ArrayMode::log, bytes / 8), options);
    ASSERT_NE(w, nullptr) << status_.message();
    ASSERT_TRUE(pool_->commit_wait().ok());
    commit();
    words(w)[7] = 7;
    commit();
    words(w)[7] = 8;
    ASSERT_TRUE(pool_->restore(3).ok());
    EXPECT_EQ(words(w)[7], 7);
    crash();
  }
  ASSERT_EQ(::munmap(memory, bytes), 0);
}

TEST_F(Arrays, that_are_staged_are_saved_as_they_were_at_the_call) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), staged());
  ArrayOptions both = compared();
  both.staged = true;
  VersionedArray* w = array("w", shape(ArrayMode::log, 1000), both);
  std::uint64_t iteration = 0;
  ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, sizeof iteration).ok());
  restart(0);
  const auto image = [this] {
    return std::vector<std::byte>(medium_->durable().begin(), medium_->durable().end());
  };
  std::vector<std::byte> before;  // when the last exchange, of version 4, took place
  group_.on_exchange = [&] { before = image(); };
  for (std::int64_t v = 1; v <= 5; ++v) {
    words(u)[0] = words(w)[999] = v;
    iteration = static_cast<std::uint64_t>(v);
    EXPECT_EQ(pool_->commit_staged().value(), static_cast<std::uint64_t>(v));
    words(u)[0] = words(w)[999] = -1;  // at once
    iteration = 99;
  }
  group_.on_exchange = nullptr;
  const auto expect = [&](const std::vector<std::byte>& durable, std::uint64_t version) {
    image_ = durable;
    pool_.reset();
    open();
    u = array("u", shape(ArrayMode::copy, 1000), staged());
    w = array("w", shape(ArrayMode::log, 1000), both);
    ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration, sizeof iteration).ok());
    restart(version);
    EXPECT_EQ(words(u)[0], static_cast<std::int64_t>(version));
    EXPECT_EQ(words(w)[999], static_cast<std::int64_t>(version));
    EXPECT_EQ(iteration, version);
  };
  EXPECT_EQ(pool_->commit_wait().value(), 5U);
  EXPECT_EQ(pool_->status().version, 5U);
  EXPECT_EQ(pool_->commit().value(), 6U);  // takes the buffers as they are
  words(u)[0] = words(w)[999] = 7;
  iteration = 7;
  EXPECT_EQ(pool_->commit().value(), 7U);
  const auto after = image();
  expect(before, 4);
  expect(after, 7);
}

TEST_F(Arrays, that_were_staged_are_saved_from_there_and_then_from_the_buffer) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), staged());
  restart(0);
  const auto saved = [&] {
    EXPECT_TRUE(u->save().ok());
    const std::byte* copy = medium_->base() + u->copy_offset(u->working_copy());
    return *reinterpret_cast<const std::int64_t*>(copy);
  };
  words(u)[0] = 1;
  u->stage();
  words(u)[0] = 2;
  EXPECT_EQ(saved(), 1);
  ASSERT_TRUE(u->collect_changes().ok());
  EXPECT_EQ(saved(), 2);
}

// A rank that has left the exchange may put into others' buffers at once.
TEST_F(Arrays, that_are_staged_are_staged_before_the_one_exchange_of_the_call) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), staged());
  restart(0);
  for (std::int64_t v = 1; v <= 3; ++v) {
    words(u)[0] = v;
    const std::uint64_t before = group_.exchanges;
    group_.on_exchange = [&] { words(u)[0] = -1; };
    ASSERT_EQ(pool_->commit_staged().value(), static_cast<std::uint64_t>(v));
    EXPECT_EQ(group_.exchanges - before, 1U);
  }
  EXPECT_EQ(pool_->commit_wait().value(), 3U);
  group_.on_exchange = nullptr;
  crash();
  open();
  u = array("u", shape(ArrayMode::copy, 1000), staged());
  restart(3);
  EXPECT_EQ(words(u)[0], 3);
}

TEST_F(Arrays, that_are_not_staged_refuse_a_staged_commit) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), staged());
  array("t", shape(ArrayMode::twin, 1000));
  restart(0);
  words(u)[0] = 1;
  const auto refused = pool_->commit_staged();
  EXPECT_EQ(refused.status().code(), Code::wrong_state);
  EXPECT_NE(refused.status().message().find("'t'"), std::string::npos);
  EXPECT_EQ(pool_->commit_wait().status().code(), Code::wrong_state);  // and the others learn of it
  EXPECT_EQ(pool_->commit().value(), 1U);
}

TEST_F(Arrays, in_a_staged_commit_that_fails_can_be_committed_again) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), staged());
  restart(0);
  words(u)[0] = 1;
  ASSERT_TRUE(pool_->commit_staged().ok());
  ASSERT_EQ(pool_->commit_wait().value(), 1U);
  words(u)[0] = 2;
  medium_->failing_fence = medium_->counters().fence_calls + 1;  // the saver's
  ASSERT_EQ(pool_->commit_staged().value(), 2U);
  EXPECT_EQ(pool_->commit_staged().status().code(), Code::io_error);
  words(u)[0] = 3;
  ASSERT_EQ(pool_->commit_staged().value(), 2U);
  EXPECT_EQ(pool_->commit_wait().value(), 2U);
  crash();
  open();
  u = array("u", shape(ArrayMode::copy, 1000), staged());
  restart(2);
  EXPECT_EQ(words(u)[0], 3);
}

TEST(Extents, are_given_out_where_they_meet_no_other) {
  const Geometry geometry{4096, 64, 4096, 3};
  const auto at = [&](std::uint64_t count, std::vector<Extent> used) {
    ArrayEntry entry =
        lay_out("u", 0, {ArrayType::byte, ArrayMode::twin, false, {count}}, geometry).take();
    place(entry, std::make_shared<FreeSpace>(1000, std::move(used)), geometry);
    EXPECT_EQ(entry.hold->extent().begin, entry.first_offset);
    EXPECT_EQ(entry.hold->extent().end, entry.end_offset(geometry.block_bytes));
    return entry.first_offset;
  };
  EXPECT_EQ(at(64, {}), 1024U);
  EXPECT_EQ(at(64, {{1024, 1025}}), 1088U);
  EXPECT_EQ(at(64, {{1216, 1300}}), 1024U);                // three copies of 64 fit before it
  EXPECT_EQ(at(65, {{1216, 1300}}), 1344U);                // and of 65 they do not
  EXPECT_EQ(at(64, {{1300, 1400}, {1024, 1100}}), 1408U);  // in any order
  EXPECT_EQ(at(64, {{1024, 5000}, {1100, 1200}}), 5056U);  // one inside of another
  EXPECT_EQ(at(0, {{1024, 1025}, {1281, 1290}}), 1088U);   // empty ones are places, too
  EXPECT_EQ(at(4 << 20, {{1024, 1025}}), 2U << 20);        // large ones on huge pages
}

// Against a map of bytes.
TEST(Extents, are_free_again_when_the_last_hold_goes) {
  const std::uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  auto space = std::make_shared<FreeSpace>(640, std::vector<Extent>{{704, 768}});
  std::vector<bool> used(1 << 16);
  std::fill(used.begin() + 704, used.begin() + 768, true);
  std::vector<std::unique_ptr<ExtentHold>> holds;
  for (int step = 0; step < 4000; ++step) {
    if (!holds.empty() && random() % 5 < 2) {
      const std::size_t which = random() % holds.size();
      const Extent gone = holds[which]->extent();
      std::fill(used.begin() + static_cast<long>(gone.begin),
                used.begin() + static_cast<long>(gone.end), false);
      holds.erase(holds.begin() + static_cast<long>(which));
      continue;
    }
    const std::uint64_t align = std::uint64_t{64} << (random() % 3);
    const std::uint64_t bytes = 1 + random() % 300;
    const Extent extent = space->take(bytes, align);
    ASSERT_EQ(extent.begin % align, 0U);
    ASSERT_EQ(extent.end, extent.begin + bytes);
    ASSERT_GE(extent.begin, 640U);
    if (extent.end > used.size()) {
      space->give_back(extent);
      break;
    }
    for (std::uint64_t at = extent.begin; at < extent.end; ++at) ASSERT_FALSE(used[at]) << at;
    std::fill(used.begin() + static_cast<long>(extent.begin),
              used.begin() + static_cast<long>(extent.end), true);
    holds.push_back(std::make_unique<ExtentHold>(space, extent));
  }
  holds.clear();
  EXPECT_EQ(space->end(), 768U);
  EXPECT_EQ(space->take(1000, 64).begin, 768U);
  EXPECT_EQ(space->take(64, 64).begin, 640U);
}

}  // namespace
}  // namespace perdure
