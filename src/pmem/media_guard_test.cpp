// SPDX-License-Identifier: BSD-3-Clause
//
// Media guard: memory that raises SIGBUS is reported, and kills nobody. A file that is cut while it
// is mapped behaves as a poisoned line of persistent memory does.
#include "pmem/media_guard.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace perdure {
namespace {

class CutFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/perdure-test-XXXXXX";
    file_ = ::mkstemp(name);
    ASSERT_GE(file_, 0);
    ::unlink(name);
    ASSERT_EQ(::ftruncate(file_, 4 * page), 0);
    mapped_ = static_cast<std::byte*>(
        ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    ASSERT_NE(static_cast<void*>(mapped_), MAP_FAILED);
  }
  void TearDown() override {
    ::munmap(mapped_, 4 * page);
    ::close(file_);
  }
  static constexpr std::uint64_t page = 4096;
  int file_ = -1;
  std::byte* mapped_ = nullptr;
};

TEST_F(CutFile, whole_memory_is_readable) {
  EXPECT_FALSE(first_unreadable(mapped_, 4 * page).has_value());
  EXPECT_FALSE(first_unreadable(mapped_ + 1, 0).has_value());
}

TEST_F(CutFile, the_first_byte_that_is_gone_is_named_again_and_again) {
  ASSERT_EQ(::ftruncate(file_, 2 * page), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first_unreadable(mapped_, 4 * page), 2 * page);
    EXPECT_EQ(first_unreadable(mapped_ + page, 3 * page), page);
    EXPECT_FALSE(first_unreadable(mapped_, 2 * page).has_value());
  }
}

TEST_F(CutFile, what_is_there_is_copied_and_what_is_gone_is_not) {
  std::vector<std::byte> copy(4 * page);
  std::memset(mapped_, 7, 4 * page);
  EXPECT_TRUE(copy_readable(copy.data(), mapped_, 4 * page));
  EXPECT_TRUE(std::all_of(copy.begin(), copy.end(), [](std::byte b) { return b == std::byte{7}; }));
  ASSERT_EQ(::ftruncate(file_, 2 * page), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(copy_readable(copy.data(), mapped_, 4 * page));
    EXPECT_FALSE(copy_readable(copy.data(), mapped_ + 3 * page, 1));
    EXPECT_TRUE(copy_readable(copy.data(), mapped_, 2 * page));
  }
  EXPECT_TRUE(copy_readable(nullptr, nullptr, 0));
}

TEST_F(CutFile, threads_have_guards_of_their_own) {
  ASSERT_EQ(::ftruncate(file_, page), 0);
  std::optional<std::uint64_t> other;
  std::thread thread([&] { other = first_unreadable(mapped_, 2 * page); });
  EXPECT_EQ(first_unreadable(mapped_, 2 * page), page);
  thread.join();
  EXPECT_EQ(other, page);
}

TEST_F(CutFile, what_is_gone_of_a_guarded_range_becomes_zeros_which_it_says) {
  std::memset(mapped_, 7, 4 * page);
  const GuardedRange first(mapped_, 2 * page);
  const GuardedRange second(mapped_ + 2 * page, 2 * page);
  ASSERT_EQ(::ftruncate(file_, 3 * page), 0);
  std::vector<std::byte> copy(mapped_, mapped_ + 4 * page);
  EXPECT_EQ(copy[3 * page - 1], std::byte{7});
  EXPECT_EQ(std::count(copy.begin(), copy.end(), std::byte{0}), static_cast<std::ptrdiff_t>(page));
  EXPECT_FALSE(first.has_lost_pages());
  EXPECT_TRUE(second.has_lost_pages());
  ASSERT_EQ(::ftruncate(file_, 4 * page), 0);  // what was put back does not undo it
  EXPECT_TRUE(second.has_lost_pages());
}

TEST_F(CutFile, an_entry_of_a_guarded_range_is_used_again_without_what_it_had_lost) {
  for (int i = 0; i < 3; ++i) {
    const GuardedRange range(mapped_, 4 * page);
    EXPECT_FALSE(range.has_lost_pages());
    ASSERT_EQ(::ftruncate(file_, 0), 0);
    EXPECT_EQ(mapped_[page * static_cast<std::uint64_t>(i)], std::byte{0});
    EXPECT_TRUE(range.has_lost_pages());
  }
}

using MediaGuardDeathTest = CutFile;

TEST_F(MediaGuardDeathTest, a_range_that_is_guarded_no_more_ends_the_process) {
  {
    const GuardedRange range(mapped_, 4 * page);
  }
  ASSERT_EQ(::ftruncate(file_, page), 0);
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile std::byte*>(mapped_ + page)), "");
}

TEST_F(MediaGuardDeathTest, a_fault_outside_of_the_guard_still_ends_the_process) {
  ASSERT_EQ(::ftruncate(file_, page), 0);
  static_cast<void>(first_unreadable(mapped_, 2 * page));
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile std::byte*>(mapped_ + page)), "");
}

}  // namespace
}  // namespace perdure
