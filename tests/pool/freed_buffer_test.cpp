// SPDX-License-Identifier: BSD-3-Clause
//
// Buffers of the application's own that go while their arrays are open: the commit fails with a
// sentence, never takes garbage, and the version before is whole.
// ctest: NAME pool_freed_test UNSANITIZED LABELS truth
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/perdure.h"
#include "perdure/perdure.hpp"
#include "temporary_directory.hpp"

namespace {

using perdure_test::TemporaryDirectory;

constexpr std::size_t page = 4096;

// After realloc() itself a compiler would not let the old pointer be looked at.
[[gnu::noinline]] void* changed_size(void* block, std::size_t bytes) {
  return std::realloc(block, bytes);
}

struct Way {
  std::string name;
  perdure_mode mode;
  unsigned flags;
  std::size_t bytes;
};

class Freed : public testing::TestWithParam<Way> {
 protected:
  ~Freed() override { (void)perdure_close(pool_); }

  std::size_t bytes() const { return GetParam().bytes; }
  void* allocate() const { return std::aligned_alloc(page, bytes()); }
  // With one version that holds ones.
  void open(void* buffer) {
    std::memset(buffer, 1, bytes());
    buffer_ = static_cast<unsigned char*>(buffer);
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), 0);
    const std::uint64_t count = bytes();
    const perdure_array_options options{GetParam().flags, buffer, 0, nullptr};
    ASSERT_EQ(
        perdure_array_open(pool_, "w", PERDURE_BYTE, 1, &count, GetParam().mode, &options, &array_),
        0)
        << perdure_last_error();
    ASSERT_EQ(perdure_restart(pool_, nullptr), 0) << perdure_last_error();
    ASSERT_EQ(commit(), 0) << perdure_last_error();
  }
  int commit() {
    if ((GetParam().flags & PERDURE_MARKS) != 0) {
      EXPECT_EQ(perdure_mark(array_, 0, bytes()), 0);
    }
    return perdure_commit(pool_, nullptr);
  }
  void expect_gone(const char* how) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(commit(), PERDURE_E_STATE);
      const std::string sentence = perdure_last_error();
      EXPECT_NE(sentence.find("array 'w'"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find(how), std::string::npos) << sentence;
    }
    EXPECT_EQ(perdure_restore(pool_, 1), PERDURE_E_STATE);
    EXPECT_EQ(perdure_close(std::exchange(pool_, nullptr)), 0) << perdure_last_error();
    expect_version(1, 1);
  }
  void expect_here() {
    buffer_[bytes() / 2] = 2;
    ASSERT_EQ(commit(), 0) << perdure_last_error();
    EXPECT_EQ(perdure_close(std::exchange(pool_, nullptr)), 0);
    expect_version(2, 2);
  }
  // In a new run.
  void expect_version(std::uint64_t version, int middle) {
    const std::unique_ptr<void, decltype(&std::free)> memory(allocate(), std::free);
    const std::uint64_t count = bytes();
    const perdure_array_options options{GetParam().flags, memory.get(), 0, nullptr};
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), 0);
    ASSERT_EQ(
        perdure_array_open(pool_, "w", PERDURE_BYTE, 1, &count, GetParam().mode, &options, &array_),
        0);
    std::uint64_t found = 0;
    ASSERT_EQ(perdure_restart(pool_, &found), 0) << perdure_last_error();
    EXPECT_EQ(found, version);
    const auto* const now = static_cast<const unsigned char*>(memory.get());
    EXPECT_EQ(now[bytes() / 2], middle);
    EXPECT_EQ(now[0], 1);
    EXPECT_EQ(now[bytes() - 1], 1);
    ASSERT_EQ(perdure_close(std::exchange(pool_, nullptr)), 0);
  }

  TemporaryDirectory directory_;
  perdure_pool* pool_ = nullptr;
  perdure_array* array_ = nullptr;
  unsigned char* buffer_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Ways, Freed,
                         testing::Values(Way{"copy_small", PERDURE_COPY, 0, 2 * page},
                                         Way{"copy_large", PERDURE_COPY, 0, 1000 * page},
                                         Way{"log_small", PERDURE_LOG, 0, 2 * page},
                                         Way{"log_large", PERDURE_LOG, 0, 1000 * page},
                                         Way{"marked", PERDURE_LOG, PERDURE_MARKS, 3 * page},
                                         Way{"compared", PERDURE_LOG, PERDURE_COMPARE, 100 * page}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(Freed, after_free_there_is_nothing_to_commit) {
  void* const memory = allocate();
  open(memory);
  std::free(memory);
  expect_gone("freed");
}

TEST_P(Freed, another_thread_may_have_freed_it) {
  void* const memory = allocate();
  open(memory);
  std::thread([memory] { std::free(memory); }).join();
  expect_gone("freed");
}

TEST_P(Freed, after_realloc_moved_it_there_is_nothing_to_commit) {
  void* const memory = allocate();
  open(memory);
  void* const wall = std::malloc(1);  // it can't grow where it is, if it is on the heap
  void* const now = changed_size(memory, 40 * bytes());
  ASSERT_NE(now, nullptr);
  if (now == memory) {
    expect_here();
  } else {
    EXPECT_EQ(static_cast<unsigned char*>(now)[bytes() - 1], 1);
    std::memset(now, 3, 40 * bytes());
    expect_gone("moved by realloc()");
  }
  std::free(now);
  std::free(wall);
}

TEST_P(Freed, realloc_that_leaves_it_where_it_is_changes_nothing) {
  void* const memory = allocate();
  open(memory);
  void* const same = changed_size(memory, ::malloc_usable_size(memory));
  ASSERT_EQ(same, memory);
  expect_here();
  std::free(same);
}

TEST_P(Freed, realloc_that_fails_changes_nothing) {
  void* const memory = allocate();
  open(memory);
  volatile std::size_t too_much = ~std::size_t{0} / 4;
  ASSERT_EQ(changed_size(memory, too_much), nullptr);
  expect_here();
  std::free(memory);
}

TEST_P(Freed, realloc_that_cuts_it_leaves_nothing_to_commit) {
  void* const memory = allocate();
  open(memory);
  void* const now = changed_size(memory, bytes() - 1);
  expect_gone("moved by realloc()");
  std::free(now);
}

TEST_P(Freed, after_munmap_there_is_nothing_to_commit) {
  void* const memory =
      ::mmap(nullptr, bytes() + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  open(memory);
  ASSERT_EQ(::munmap(static_cast<char*>(memory) + page, page), 0);
  expect_gone("unmapped");
  ::munmap(memory, bytes() + page);
}

// By a system call, which nothing intercepts: the commit finds the hole.
TEST_P(Freed, memory_that_a_system_call_unmapped_ends_no_process) {
  void* const memory =
      ::mmap(nullptr, bytes() + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  open(memory);
  ASSERT_EQ(::syscall(SYS_munmap, static_cast<char*>(memory) + page, page), 0);
  expect_gone("unmapped");
  ::munmap(memory, bytes() + page);
}

TEST_P(Freed, what_is_freed_before_the_restart_is_not_written_to) {
  void* const memory = allocate();
  open(memory);
  ASSERT_EQ(perdure_close(std::exchange(pool_, nullptr)), 0);
  const std::uint64_t count = bytes();
  const perdure_array_options options{GetParam().flags, memory, 0, nullptr};
  ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), 0);
  ASSERT_EQ(
      perdure_array_open(pool_, "w", PERDURE_BYTE, 1, &count, GetParam().mode, &options, &array_),
      0);
  std::free(memory);
  EXPECT_EQ(perdure_restart(pool_, nullptr), PERDURE_E_STATE);
  EXPECT_NE(std::string(perdure_last_error()).find("freed"), std::string::npos);
  EXPECT_EQ(perdure_close(std::exchange(pool_, nullptr)), 0);
  expect_version(1, 1);
}

TEST_P(Freed, memory_beside_it_and_of_closed_pools_may_go) {
  void* const before = std::malloc(100);
  void* const memory = allocate();
  void* const after = std::malloc(100);
  open(memory);
  std::free(before);
  std::free(after);
  std::vector<std::unique_ptr<char[]>> blocks;
  for (std::size_t i = 0; i < 2000; ++i) blocks.push_back(std::make_unique<char[]>(1 + i * 7));
  blocks.clear();
  expect_here();
  std::free(memory);
}

TEST_P(Freed, a_child_may_free_its_copy) {
  void* const memory = allocate();
  open(memory);
  const pid_t child = ::fork();
  if (child == 0) {
    std::free(memory);
    ::_exit(0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  expect_here();
  std::free(memory);
}

alignas(page) unsigned char of_the_program[1000 * page];

TEST_P(Freed, static_memory_and_that_of_the_stack_stay) {
  open(of_the_program);
  expect_here();
  alignas(page) unsigned char on_the_stack[100 * page];
  if (bytes() > sizeof on_the_stack) return;
  std::filesystem::remove_all(directory_ / "pool");
  open(on_the_stack);
  expect_here();
}

TEST(FreedVector, that_grew_fails_the_commit_and_one_that_did_not_is_committed) {
  const TemporaryDirectory directory;
  std::vector<double> values(1000, 1.0);
  values.reserve(1001);
  perdure::Pool pool(directory / "pool");
  pool.array<double>("v", {1000}, perdure::Mode::copy,
                     {.buffer = std::span<double>(values.data(), 1000)});
  pool.restart();
  EXPECT_EQ(pool.commit(), 1U);
  values.push_back(2);  // there is room
  EXPECT_EQ(pool.commit(), 2U);
  for (int i = 0; i < 100000; ++i) values.push_back(3);
  try {
    (void)pool.commit();
    ADD_FAILURE() << "garbage was committed";
  } catch (const perdure::Error& failure) {
    EXPECT_NE(std::string(failure.what()).find("array 'v'"), std::string::npos) << failure.what();
    EXPECT_NE(std::string(failure.what()).find("freed"), std::string::npos) << failure.what();
  }
  pool.close();
}

TEST(FreedVector, that_was_deleted_fails_the_commit) {
  const TemporaryDirectory directory;
  auto values = std::make_unique<std::vector<double>>(100000, 1.0);
  perdure::Pool pool(directory / "pool");
  pool.array<double>("v", {100000}, perdure::Mode::copy, {.buffer = *values});
  pool.restart();
  EXPECT_EQ(pool.commit(), 1U);
  values.reset();
  EXPECT_THROW((void)pool.commit(), perdure::Error);
  pool.close();
}

}  // namespace
