// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays that change their size: in every mode, within the room that there is and beyond it,
// between versions that are kept, and while one is being saved.
// ctest: LABELS truth
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "pool/extents.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

ArrayOptions of_program(void* buffer = nullptr) {
  ArrayOptions options;
  options.buffer = buffer;
  options.keep_contents = true;
  options.of_program = true;
  return options;
}

using Words = std::vector<std::int64_t>;

class Sizes : public PoolTest {
 protected:
  void SetUp() override { device_max_ = 2U << 20U; }
  void restart(std::uint64_t expected) {
    const auto restored = pool_->restart();
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    EXPECT_EQ(restored.value(), expected);
  }
  void commit() {
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
  }
  Status resize(VersionedArray* array, std::uint64_t count, void* buffer = nullptr) {
    return pool_->resize_array(*array, {count}, buffer);
  }
  static Words contents(const VersionedArray* array) {
    Words words(array->size_bytes() / 8);
    if (!words.empty()) std::memcpy(words.data(), array->consistent(), array->size_bytes());
    return words;
  }
};

TEST_F(Sizes, of_an_array_change_and_its_elements_stay_as_far_as_there_is_room) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log, ArrayMode::twin}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(mode, 3), of_program());
    restart(0);
    for (int i = 0; i < 3; ++i) words(u)[i] = i + 1;
    commit();
    for (const std::uint64_t count : {5U, 2000U, 2100U, 2U, 0U, 4U}) {
      ASSERT_TRUE(resize(u, count).ok());
      Words expected = {1, 2, 3};
      if (count == 2) expected = {1, 2};
      if (count == 0 || count == 4) expected = {};
      expected.resize(count);
      if (mode == ArrayMode::twin) {
        EXPECT_EQ(contents(u), expected);
      } else {
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), words(u))) << count;
      }
      std::copy(expected.begin(), expected.end(), words(u));
      commit();
      EXPECT_EQ(contents(u), expected);
    }
    crash();
    open();
    EXPECT_EQ(array("u", shape(mode, 5)), nullptr);
    EXPECT_EQ(status_.code(), Code::shape_mismatch);
    ASSERT_NE(pool_->held_shape("u"), nullptr);
    u = array("u", *pool_->held_shape("u"), of_program());
    restart(7);
    EXPECT_EQ(contents(u), Words(4));
  }
}

TEST_F(Sizes, are_those_of_the_version_that_is_restored) {
  geometry_.slots = 5;
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log, ArrayMode::twin}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(mode, 10), of_program());
    restart(0);
    const std::uint64_t counts[] = {10, 4000, 4010, 7};
    for (const std::uint64_t count : counts) {
      ASSERT_TRUE(resize(u, count).ok());
      std::fill_n(words(u), count, static_cast<std::int64_t>(count));
      commit();
    }
    for (const std::uint64_t version : {2U, 4U, 1U, 3U, 2U}) {
      ASSERT_TRUE(pool_->restore(version).ok());
      const std::uint64_t count = counts[version - 1];
      EXPECT_EQ(contents(u), Words(count, static_cast<std::int64_t>(count)));
    }
    std::fill_n(words(u), 4000, 5);
    commit();
    ASSERT_TRUE(pool_->restore(3).ok());
    EXPECT_EQ(contents(u), Words(4010, 4010));
  }
}

TEST_F(Sizes, of_a_buffer_that_stays_grow_as_far_as_its_memory_reaches) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(memory) + 2 * page, 2 * page, PROT_NONE), 0);
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 10), of_program(memory));
  restart(0);
  commit();
  const std::uint64_t words_of_page = page / 8;
  EXPECT_TRUE(resize(u, words_of_page, memory).ok());
  EXPECT_TRUE(resize(u, 2 * words_of_page, memory).ok());
  words(u)[2 * words_of_page - 1] = 7;
  commit();
  EXPECT_EQ(resize(u, 2 * words_of_page + 1, memory).code(), Code::invalid_argument);
  EXPECT_EQ(contents(u).size(), 2 * words_of_page);
  EXPECT_TRUE(resize(u, 10, memory).ok());
  u->lose_buffer("freed");
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(memory) + page, page, PROT_NONE), 0);
  EXPECT_EQ(resize(u, 2 * words_of_page, memory).code(), Code::invalid_argument);
  EXPECT_TRUE(resize(u, words_of_page, memory).ok());
  commit();
  crash();
  ASSERT_EQ(::munmap(memory, 4 * page), 0);
}

TEST_F(Sizes, change_with_a_buffer_of_the_program_that_has_moved) {
  open();
  Words buffer(10, 1);
  VersionedArray* u = array("u", shape(ArrayMode::copy, 10), of_program(buffer.data()));
  restart(0);
  commit();
  Words other(1000, 2);
  u->lose_buffer("freed");
  EXPECT_FALSE(pool_->commit().ok());
  EXPECT_EQ(resize(u, 12).code(), Code::invalid_argument);  // where is it?
  ASSERT_TRUE(resize(u, 1000, other.data()).ok());
  commit();
  EXPECT_EQ(pool_->status().version, 2U);
  const Status back = pool_->restore(1);
  EXPECT_EQ(back.code(), Code::not_found);  // one is kept
  ASSERT_TRUE(resize(u, 0).ok());           // an empty vector has no memory
  commit();
  ASSERT_TRUE(resize(u, 3, other.data()).ok());
  ASSERT_TRUE(resize(u, 5).ok());  // from now on it is ours
  EXPECT_EQ(u->given_buffer(), nullptr);
  EXPECT_EQ(contents(u), (Words{2, 2, 2, 0, 0}));
  ASSERT_TRUE(resize(u, 3).ok());
  commit();
  crash();
  open();
  u = array("u", shape(ArrayMode::copy, 3), of_program());
  restart(4);
  EXPECT_EQ(contents(u), Words(3, 2));
}

TEST_F(Sizes, of_a_version_are_refused_where_the_memory_is_the_programs) {
  geometry_.slots = 4;
  open();
  Words buffer(2000, 1);
  VersionedArray* u = array("u", shape(ArrayMode::copy, 10), of_program(buffer.data()));
  restart(0);
  commit();
  ASSERT_TRUE(resize(u, 2000, buffer.data()).ok());
  commit();
  const Status status = pool_->restore(1);
  EXPECT_EQ(status.code(), Code::shape_mismatch);
  EXPECT_NE(status.message().find("resize it"), std::string::npos) << status.message();
  ASSERT_TRUE(resize(u, 10, buffer.data()).ok());
  ASSERT_TRUE(pool_->restore(1).ok());
  EXPECT_EQ(contents(u), Words(10, 1));
}

TEST_F(Sizes, that_change_while_a_version_is_saved_are_of_the_next_one) {
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log}) {
    for (const std::uint64_t count : {1010U, 9000U, 100U}) {
      for (const bool close : {false, true}) {
        image_.clear();
        open();
        VersionedArray* u = array("u", shape(mode, 1000), of_program());
        restart(0);
        commit();
        ASSERT_TRUE(resize(u, 990).ok());
        std::fill_n(words(u), 990, 1);
        ASSERT_TRUE(pool_->commit_begin().ok());
        ASSERT_TRUE(resize(u, count).ok());
        std::fill_n(words(u), count, 2);
        if (close) {
          ASSERT_TRUE(pool_->close_array(u, false).ok());
        }
        ASSERT_TRUE(pool_->commit_wait().ok());
        const auto durable = medium_->durable();
        const std::vector<std::byte> of_two(durable.begin(), durable.end());
        commit();
        const bool both = !close;
        for (const std::uint64_t version : {both ? 3U : 2U, 2U}) {
          crash();
          if (version == 2 && both) image_ = of_two;
          open();
          u = array("u", *pool_->held_shape("u"), of_program());
          restart(version == 2 && both ? 2 : 3);
          const bool newer = version == 3;
          EXPECT_EQ(contents(u), Words(newer ? count : 990, newer ? 2 : 1));
        }
      }
    }
  }
}

TEST_F(Sizes, of_a_twin_array_that_is_being_committed_stay_and_so_do_those_of_others) {
  open();
  VersionedArray* t = array("t", shape(ArrayMode::twin, 100), of_program());
  VersionedArray* f = array("f", shape(ArrayMode::flush, 100, false), of_program());
  VersionedArray* w = array("w", shape(ArrayMode::copy, 100));  // a window's
  EXPECT_EQ(resize(t, 10).code(), Code::wrong_state);           // before the restart
  restart(0);
  ASSERT_TRUE(pool_->commit_begin().ok());
  EXPECT_EQ(resize(t, 200).code(), Code::wrong_state);
  ASSERT_TRUE(pool_->commit_wait().ok());
  EXPECT_TRUE(resize(t, 200).ok());
  EXPECT_EQ(resize(f, 200).code(), Code::unsupported);
  EXPECT_EQ(resize(w, 200).code(), Code::unsupported);
  EXPECT_EQ(pool_->resize_array(*t, {20, 10}, nullptr).code(), Code::shape_mismatch);
  std::int64_t buffer[10];
  EXPECT_EQ(resize(t, 10, buffer).code(), Code::invalid_argument);
}

TEST_F(Sizes, stay_as_they_are_where_there_is_no_space) {
  device_max_ = 1U << 20U;
  for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::log, ArrayMode::twin}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(mode, 1000), of_program());
    restart(0);
    std::fill_n(words(u), 1000, 3);
    commit();
    std::fill_n(words(u), 1000, 4);
    EXPECT_EQ(resize(u, 200'000).code(), Code::no_space);
    EXPECT_EQ(u->size_bytes(), 8000U);
    commit();
    EXPECT_EQ(contents(u), Words(1000, 4));
  }
}

TEST_F(Sizes, that_no_version_has_are_forgotten_when_the_array_is_closed) {
  for (const std::uint64_t count : {1001U, 9000U}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), of_program());
    restart(0);
    std::fill_n(words(u), 1000, 3);
    commit();
    ASSERT_TRUE(resize(u, count).ok());
    ASSERT_TRUE(pool_->close_array(u, false).ok());
    EXPECT_EQ(pool_->held_shape("u")->extents, (std::vector<std::uint64_t>{1000}));
    commit();
    crash();
    open();
    u = array("u", shape(ArrayMode::copy, 1000), of_program());
    ASSERT_NE(u, nullptr) << status_.message();
    restart(2);
    EXPECT_EQ(contents(u), Words(1000, 3));
  }
}

// A block has sixteen pages, whose checksums make its own.
TEST_F(Sizes, that_are_cut_at_the_end_of_a_page_leave_right_checksums) {
  geometry_.block_bytes = 65536;
  for (const std::uint64_t count : {15'360U, 14'848U, 10'240U}) {  // of pages of 512 words
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::log, 15'500), of_program());
    restart(0);
    std::fill_n(words(u), 15'500, 3);
    for (int copy = 0; copy < 3; ++copy) commit();  // all copies have all of it
    ASSERT_TRUE(resize(u, count).ok());
    commit();
    crash();
    open();
    u = array("u", *pool_->held_shape("u"), of_program());
    restart(4);
    EXPECT_EQ(contents(u), Words(count, 3));
  }
}

TEST_F(Sizes, stay_and_all_is_saved_when_a_log_array_has_another_buffer) {
  open();
  Words first(2000, 1);
  Words second(2000, 2);
  ArrayOptions marked = of_program(first.data());
  marked.marks = true;
  VersionedArray* u = array("u", shape(ArrayMode::log, 2000), marked);
  restart(0);
  for (const std::uint64_t marked_bytes : {16'000U, 8U, 8U}) {
    ASSERT_TRUE(u->mark(0, marked_bytes).ok());
    commit();
  }
  ASSERT_TRUE(resize(u, 2000, second.data()).ok());
  commit();
  crash();
  open();
  u = array("u", shape(ArrayMode::log, 2000), of_program());
  restart(4);
  EXPECT_EQ(contents(u), Words(2000, 2));
}

TEST_F(Sizes, that_were_cut_and_grow_again_store_nothing_to_the_committed_copy) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::twin, 100), of_program());
  restart(0);
  std::fill_n(words(u), 100, 7);
  commit();
  ASSERT_TRUE(resize(u, 70).ok());  // where it is
  ASSERT_TRUE(resize(u, 100).ok());
  Words expected(70, 7);
  expected.resize(100);
  EXPECT_EQ(contents(u), expected);
  medium_->flush(0, medium_->size_bytes());  // what the processor may do at any time
  ASSERT_TRUE(medium_->fence().ok());
  crash();
  open();
  u = array("u", shape(ArrayMode::twin, 100), of_program());
  restart(1);
  EXPECT_EQ(contents(u), Words(100, 7));
}

TEST_F(Sizes, that_were_given_up_leave_the_copies_of_older_versions_alone) {
  geometry_.slots = 4;
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), of_program());
  restart(0);
  for (int version = 1; version <= 3; ++version) {
    std::fill_n(words(u), 1000, version);
    commit();
  }
  ASSERT_TRUE(resize(u, 9000).ok());  // elsewhere
  ASSERT_TRUE(pool_->close_array(u, false).ok());
  u = array("u", shape(ArrayMode::copy, 1000), of_program());
  std::fill_n(words(u), 1000, 4);
  commit();
  for (const std::uint64_t version : {2U, 3U, 4U}) {
    ASSERT_TRUE(pool_->restore(version).ok());
    EXPECT_EQ(contents(u), Words(1000, static_cast<std::int64_t>(version)));
  }
}

// Below 16 KiB pages are compared when a version is saved; above, stores are followed.
TEST_F(Sizes, that_change_how_stores_are_found_lose_none_of_before) {
  for (const auto& [before, after] : {std::pair{2038U, 2060U}, std::pair{2060U, 2038U}}) {
    image_.clear();
    open();
    VersionedArray* u = array("u", shape(ArrayMode::log, 2072), of_program());  // its room
    restart(0);
    ASSERT_TRUE(resize(u, before).ok());
    for (int version = 1; version <= 6; ++version) commit();  // all copies are alike
    words(u)[3] = 7;
    ASSERT_TRUE(resize(u, after).ok());
    commit();
    crash();
    open();
    u = array("u", *pool_->held_shape("u"), of_program());
    restart(7);
    EXPECT_EQ(words(u)[3], 7) << after;
  }
}

// A commit that failed had the number of the next one, which lacks an array that is not marked.
TEST_F(Sizes, of_an_array_that_takes_no_part_in_the_commit_under_way_leave_the_others_alone) {
  open();
  ArrayOptions marked = of_program();
  marked.marks = true;
  VersionedArray* u = array("u", shape(ArrayMode::log, 1000, false), marked);
  VersionedArray* w = array("w", shape(ArrayMode::log, 1000, false), marked);
  const auto store = [](VersionedArray* array, std::int64_t value) {
    std::fill_n(words(array), array->size_bytes() / 8, value);
    ASSERT_TRUE(array->mark(0, array->size_bytes()).ok());
  };
  restart(0);
  store(u, 1);
  store(w, 1);
  commit();
  store(w, 2);
  commit();  // u and w are in different copies
  store(u, 3);
  store(w, 3);
  EXPECT_FALSE(pool_->commit({Code::io_error, "refused"}).ok());
  ASSERT_TRUE(pool_->restore(2).ok());
  store(w, 4);
  ASSERT_TRUE(pool_->commit_begin().ok());
  ASSERT_TRUE(resize(u, 1010).ok());
  ASSERT_TRUE(pool_->commit_wait().ok());
  EXPECT_EQ(pool_->status().version, 3U);
  crash();
  open();
  u = array("u", shape(ArrayMode::log, 1000, false), marked);
  w = array("w", shape(ArrayMode::log, 1000, false), marked);
  restart(3);
  EXPECT_EQ(contents(u), Words(1000, 1));
  EXPECT_EQ(contents(w), Words(1000, 4));
}

// The second size lies where the first one has moved the array to, of which no version knows.
TEST_F(Sizes, that_change_twice_while_a_version_is_saved_are_in_no_copy_yet) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::log, 1000), of_program());
  restart(0);
  std::fill_n(words(u), 1000, 1);
  ASSERT_TRUE(pool_->commit_begin().ok());
  ASSERT_TRUE(resize(u, 9000).ok());
  ASSERT_TRUE(resize(u, 9010).ok());
  ASSERT_TRUE(pool_->commit_wait().ok());
  EXPECT_FALSE(u->committed());
  commit();
  EXPECT_TRUE(u->committed());
}

// As malloc() may give it again.
TEST_F(Sizes, stay_and_all_is_saved_when_the_buffer_was_freed_and_lies_where_it_was) {
  for (const std::uint64_t after : {2000U, 1990U, 2100U}) {
    image_.clear();
    open();
    Words buffer(2100, 1);
    ArrayOptions marked = of_program(buffer.data());
    marked.marks = true;
    VersionedArray* u = array("u", shape(ArrayMode::log, 2000), marked);
    restart(0);
    for (const std::uint64_t marked_bytes : {16'000U, 8U, 8U}) {
      ASSERT_TRUE(u->mark(0, marked_bytes).ok());
      commit();
    }
    u->lose_buffer("freed");
    std::ranges::fill(buffer, 2);
    ASSERT_TRUE(resize(u, after, buffer.data()).ok());
    commit();
    crash();
    open();
    u = array("u", shape(ArrayMode::log, after), of_program());
    restart(4);
    EXPECT_EQ(contents(u), Words(after, 2));
  }
}

// What was the buffer is the program's, which stores there as it likes.
TEST_F(Sizes, leave_memory_that_was_freed_as_it_is) {
  constexpr std::size_t bytes = std::size_t{256} << 10U;
  for (const std::uint64_t after : {20'000U, 1000U, 0U}) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    image_.clear();
    open();
    ArrayOptions options = of_program(memory);
    options.tracker = TrackerKind::faults;
    VersionedArray* u = array("u", shape(ArrayMode::log, bytes / 8), options);
    restart(0);
    commit();
    u->lose_buffer("freed");
    ASSERT_TRUE(resize(u, after, after == 0 ? nullptr : memory).ok());
    std::memset(memory, 7, bytes);
    commit();
    ASSERT_TRUE(pool_->close_array(u, false).ok());
    u = array("u", shape(ArrayMode::log, after), of_program());
    EXPECT_EQ(contents(u), Words(after, 0x0707070707070707));
    pool_.reset();
    ASSERT_EQ(::munmap(memory, bytes), 0);
  }
}

TEST_F(Sizes, that_change_100000_times_take_the_room_of_those_that_are_kept) {
  std::mt19937_64 random(test_seed());
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 1000), of_program());
  restart(0);
  std::uint64_t count = 1000;
  for (int i = 0; i < 100'000; ++i) {
    count = std::clamp<std::uint64_t>(count + random() % 41 - 20, 500, 1500);
    if (random() % 50 == 0) count = 500 + random() % 1000;
    ASSERT_TRUE(resize(u, count).ok());
    if (i % 16 == 0) commit();
  }
  // The extent that is in use, those that two versions name, and gaps.
  EXPECT_LE(medium_->size_bytes(), 4 * 2 * 1500 * 8 * room_factor_max);
}

}  // namespace
}  // namespace perdure
