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

using MediaGuardDeathTest = CutFile;

TEST_F(MediaGuardDeathTest, a_fault_outside_of_the_guard_still_ends_the_process) {
  ASSERT_EQ(::ftruncate(file_, page), 0);
  static_cast<void>(first_unreadable(mapped_, 2 * page));
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile std::byte*>(mapped_ + page)), "");
}

}  // namespace
}  // namespace perdure
