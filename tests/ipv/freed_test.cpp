// SPDX-License-Identifier: BSD-3-Clause
//
// Objects in memory of the program's own, which it frees, reallocates or unmaps while they are
// objects: they end, and the versions hold what was in them, or they go on where the program says.
// And objects that share their last page with somebody else. Through perdure.h, on a pool in a
// directory.
// ctest: DEPS shared
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "temporary_directory.hpp"

namespace {

constexpr std::size_t page = 4096;

struct Case {
  const char* name;
  int tier;
  bool lags;
  int helper;  // as perdure_ipv_options has it
  std::size_t bytes;
};

class IpvFreed : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { memory_ = allocated(); }
  void TearDown() override {
    close();
    ::unsetenv("PERDURE_IPV");
  }
  static std::size_t bytes() { return GetParam().bytes; }
  static char* allocated() {
    void* memory = nullptr;
    if (::posix_memalign(&memory, page, bytes()) != 0) return nullptr;
    std::memset(memory, 1, bytes());
    return static_cast<char*>(memory);
  }
  void open() {
    ::setenv("PERDURE_IPV", GetParam().lags ? "lag=1" : "lag=0", 1);
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
    perdure_ipv_options options{};
    options.helper = GetParam().helper;
    ASSERT_EQ(perdure_ipv_open(pool_, &options), PERDURE_OK) << perdure_last_error();
    const perdure_ipv_object_options given{GetParam().tier, 0};
    ASSERT_EQ(perdure_ipv_object("u", memory_, bytes(), &given), PERDURE_OK);
    ASSERT_EQ(perdure_ipv_object("v", other_.data(), other_.size(), nullptr), PERDURE_OK);
    ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
  }
  void close() {
    EXPECT_EQ(perdure_ipv_close(), PERDURE_OK) << perdure_last_error();
    if (pool_ != nullptr) {
      EXPECT_EQ(perdure_close(pool_), PERDURE_OK);
    }
    pool_ = nullptr;
  }
  void iterate(char value) {
    if (memory_ != nullptr) std::memset(memory_, value, bytes());
    std::memset(other_.data(), value, other_.size());
    ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK) << perdure_last_error();
  }
  // Ends u by `free`, as the program would, and asks at once whether it ended: it would also end
  // when whoever has its memory next frees that.
  template <typename Free>
  void end_u(Free free) {
    const volatile auto address = reinterpret_cast<std::uintptr_t>(std::exchange(memory_, nullptr));
    free();
    auto* gone = reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
    EXPECT_EQ(perdure_ipv_pin(gone), PERDURE_E_NOT_FOUND);
  }
  void free_u() {
    end_u([block = memory_] { std::free(block); });
  }
  // What an allocator does with memory that it has back, and whoever gets it next.
  static void reuse() {
    std::vector<std::vector<char>> blocks;
    for (std::size_t size = 16; size < (std::size_t{4} << 20U); size *= 3) {
      blocks.emplace_back(size, 'x');
    }
    void* mapped =
        ::mmap(nullptr, 3 * bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    std::memset(mapped, 'y', 3 * bytes());
    ::munmap(mapped, 3 * bytes());
  }
  // What a restart brings back: every byte of u and of v.
  void restarted(char value_u, char value_v) {
    close();
    memory_ = allocated();
    std::memset(other_.data(), 'e', other_.size());
    open();
    EXPECT_EQ(std::string(memory_, bytes()), std::string(bytes(), value_u));
    EXPECT_EQ(std::string(other_.data(), other_.size()), std::string(other_.size(), value_v));
    std::free(memory_);
    memory_ = nullptr;
  }

  perdure_test::TemporaryDirectory directory_;
  std::vector<char> other_ = std::vector<char>(3 * page);
  char* memory_ = nullptr;
  perdure_pool* pool_ = nullptr;
  std::uint64_t version_ = 0;
};

TEST_P(IpvFreed, the_next_versions_hold_what_a_freed_object_held) {
  open();
  for (char value = 2; value < 8; ++value) iterate(value);
  std::memset(memory_, 9, bytes());  // and what was stored since
  testing::internal::CaptureStderr();
  free_u();
  for (char value = 10; value < 15; ++value) {
    reuse();
    iterate(value);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string sentence = "the memory of object 'u' was freed";
  EXPECT_NE(said.find(sentence), std::string::npos) << said;
  EXPECT_EQ(said.find(sentence), said.rfind(sentence)) << "once";
  restarted(9, 14);
}

TEST_P(IpvFreed, an_object_freed_before_it_changes_stays_as_it_was) {
  open();
  for (char value = 2; value < 5; ++value) iterate(value);
  free_u();  // with lag, the version is under way
  reuse();
  iterate(6);
  iterate(7);
  restarted(4, 7);
}

TEST_P(IpvFreed, an_object_freed_in_the_first_iteration_is_in_the_first_version) {
  open();
  free_u();
  reuse();
  iterate(6);
  iterate(7);
  restarted(1, 7);
}

TEST_P(IpvFreed, an_object_inside_a_freed_block_ends) {
  std::free(memory_);
  auto* block = static_cast<char*>(std::malloc(bytes() + 3 * page));
  const std::size_t to_page = (page - reinterpret_cast<std::uintptr_t>(block) % page) % page;
  memory_ = block + page + to_page;
  std::memset(memory_, 1, bytes());
  open();
  iterate(2);
  iterate(3);
  end_u([block] { std::free(block); });
  reuse();
  iterate(4);
  restarted(3, 4);
}

// With lag, the persistence point that begins the version has begun none, and the next one says so.
TEST_P(IpvFreed, after_realloc_there_is_no_version_before_the_program_says_where_the_object_is) {
  open();
  iterate(2);
  iterate(3);
  std::memset(memory_, 5, bytes());
  char* grown = nullptr;
  testing::internal::CaptureStderr();
  end_u([&, block = memory_] { grown = static_cast<char*>(std::realloc(block, 5 * bytes())); });
  ASSERT_NE(grown, nullptr);
  EXPECT_EQ(std::string(grown, bytes()), std::string(bytes(), 5));
  std::memset(grown, 6, 5 * bytes());
  for (int call = 0; call < 4; ++call) {
    const bool tells = !GetParam().lags || call % 2 != 0;
    EXPECT_EQ(perdure_ipv_persist(&version_), tells ? PERDURE_E_STATE : PERDURE_OK) << call;
  }
  const std::string sentence = "memory of object 'u' was given to realloc()";
  EXPECT_NE(std::string(perdure_last_error()).find(sentence), std::string::npos);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(sentence), std::string::npos) << said;
  EXPECT_EQ(said.find(sentence), said.rfind(sentence)) << "once";
  ASSERT_EQ(perdure_ipv_resize("u", grown, bytes()), PERDURE_OK) << perdure_last_error();
  iterate(7);
  iterate(7);
  std::memset(grown, 8, bytes());
  iterate(9);
  EXPECT_EQ(std::string(grown + bytes(), 4 * bytes()), std::string(4 * bytes(), 6));
  close();
  std::free(grown);
  restarted(8, 9);
}

TEST_P(IpvFreed, after_a_realloc_that_failed_the_object_is_where_the_program_says) {
  open();
  iterate(2);
  volatile std::size_t too_much = ~std::size_t{0} / 4;
  const volatile auto address = reinterpret_cast<std::uintptr_t>(memory_);
  ASSERT_EQ(std::realloc(memory_, too_much), nullptr);
  memory_ = reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
  ASSERT_EQ(perdure_ipv_resize("u", memory_, bytes()), PERDURE_OK) << perdure_last_error();
  iterate(4);
  free_u();
  restarted(4, 4);
}

// Freed before, or after, the call; in a version each.
TEST_P(IpvFreed, an_object_in_new_memory_is_followed_where_it_was_told) {
  open();
  iterate(2);
  char* const second = allocated();
  std::memset(second, 5, bytes());
  char* const first = std::exchange(memory_, second);
  ASSERT_EQ(perdure_ipv_resize("u", second, bytes()), PERDURE_OK) << perdure_last_error();
  std::memset(first, 9, bytes());
  std::free(first);
  reuse();
  iterate(3);
  free_u();
  memory_ = allocated();
  ASSERT_EQ(perdure_ipv_resize("u", memory_, bytes()), PERDURE_OK) << perdure_last_error();
  testing::internal::CaptureStderr();
  iterate(4);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it has ended no more";
  free_u();  // and is watched where it is now
  reuse();
  iterate(6);
  restarted(4, 6);
}

TEST_P(IpvFreed, an_object_becomes_empty_and_long_again) {
  open();
  iterate(2);
  free_u();
  ASSERT_EQ(perdure_ipv_resize("u", nullptr, 0), PERDURE_OK) << perdure_last_error();
  iterate(3);
  iterate(3);
  close();
  ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  std::uint64_t shape[8] = {77};
  ASSERT_EQ(perdure_stored_shape(pool_, "u", 0, nullptr, shape), PERDURE_OK);
  EXPECT_EQ(shape[0], 0U);
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_ipv_object("u", other_.data(), 8, nullptr), PERDURE_E_SHAPE);
  EXPECT_NE(std::string(perdure_last_error()).find("perdure_stored_shape()"), std::string::npos)
      << perdure_last_error();
  ASSERT_EQ(perdure_ipv_object("u", nullptr, 0, nullptr), PERDURE_OK) << perdure_last_error();
  ASSERT_EQ(perdure_ipv_object("v", other_.data(), other_.size(), nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
  memory_ = allocated();
  ASSERT_EQ(perdure_ipv_resize("u", memory_, bytes()), PERDURE_OK) << perdure_last_error();
  iterate(5);
  free_u();
  restarted(5, 5);
}

TEST_P(IpvFreed, munmap_ends_an_object_of_which_it_takes_a_page) {
  std::free(memory_);
  void* mapped =
      ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  memory_ = static_cast<char*>(mapped);
  open();
  iterate(2);
  iterate(3);
  end_u([mapped] { EXPECT_EQ(::munmap(static_cast<char*>(mapped) + page, bytes() - page), 0); });
  EXPECT_EQ(static_cast<char*>(mapped)[page - 1], 3);
  static_cast<char*>(mapped)[0] = 77;  // the program's own again
  iterate(4);
  ASSERT_EQ(::munmap(mapped, page), 0);
  restarted(3, 4);
}

TEST_P(IpvFreed, another_thread_may_free_an_object) {
  open();
  iterate(2);
  std::atomic<bool> go{false};
  std::thread thread([&] {
    while (!go) std::this_thread::yield();
    std::free(memory_);
    for (int i = 0; i < 200; ++i) {  // blocks beside objects, while versions are made
      std::vector<char> block(static_cast<std::size_t>(i) * 100 + 1, 'z');
      EXPECT_EQ(block.back(), 'z');
    }
  });
  std::memset(memory_, 3, bytes());
  go = true;
  for (char value = 4; value < 40; ++value) {
    std::memset(other_.data(), value, other_.size());
    ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  }
  thread.join();
  memory_ = nullptr;
  restarted(3, 39);
}

TEST_P(IpvFreed, hooks_do_nothing_in_the_memory_of_a_freed_object) {
  open();
  iterate(2);
  volatile auto address = reinterpret_cast<std::uintptr_t>(memory_);
  free_u();
  auto* gone = reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
  const perdure_ipv_box box{gone, 1, {bytes()}, {1}, nullptr, 0};
  EXPECT_EQ(perdure_ipv_box_begin(&box).how, PERDURE_IPV_NO_BOX);
  perdure_ipv_plain(gone);
  perdure_ipv_touch(gone, bytes());
  EXPECT_EQ(perdure_ipv_pin(gone), PERDURE_E_NOT_FOUND);
  iterate(3);
  restarted(2, 3);
}

TEST_P(IpvFreed, a_child_may_free_what_it_inherited) {
  open();
  iterate(2);
  const pid_t child = ::fork();
  if (child == 0) {
    std::free(memory_);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  iterate(3);
  free_u();
  restarted(3, 3);
}

// It was made within a box, whose rest its own object would complete, in the copy that both have.
TEST_P(IpvFreed, a_child_that_frees_late_changes_no_version) {
  open();
  iterate(2);
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const std::size_t half = bytes() / 2;
  const perdure_ipv_box box{memory_, 1, {half}, {1}, nullptr, 0};
  const perdure_ipv_answer by = perdure_ipv_box_begin(&box);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) ::_exit(1);
    std::free(memory_);
    ::_exit(0);
  }
  std::memset(memory_, 3, half);
  if (by.how != PERDURE_IPV_NO_BOX) perdure_ipv_box_end(&box, 0);
  iterate(3);
  ASSERT_EQ(perdure_ipv_wait(&version_), PERDURE_OK);
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const int end : go) ::close(end);
  free_u();
  restarted(3, 3);
}

TEST_P(IpvFreed, what_follows_an_object_in_its_last_page_stays_the_programs) {
  std::vector<char*> neighbours;
  for (int i = 0; i < 64; ++i) {
    neighbours.push_back(static_cast<char*>(std::malloc(200)));
    std::memset(neighbours.back(), 'n', 200);
  }
  open();
  for (char value = 2; value < 9; ++value) {
    for (char* neighbour : neighbours) {
      EXPECT_EQ(std::string(neighbour, 200), std::string(200, value == 2 ? 'n' : value));
      std::memset(neighbour, value + 1, 200);
    }
    reuse();
    iterate(value);
  }
  for (char* neighbour : neighbours) std::free(neighbour);
  free_u();
  restarted(8, 8);
}

// Each call of free() asks the pair, too, which must not free anything itself.
TEST(IpvFreedPair, calls_of_free_beside_a_pair_do_what_they_did) {
  const perdure_test::TemporaryDirectory directory;
  perdure_pool* pool = nullptr;
  ASSERT_EQ(perdure_open((directory / "pool").c_str(), nullptr, &pool), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_open(pool, nullptr), PERDURE_OK);
  std::vector<char> own(3 * page);
  char* const pair[] = {static_cast<char*>(perdure_ipv_alloc(page)),
                        static_cast<char*>(perdure_ipv_alloc(page))};
  ASSERT_EQ(perdure_ipv_object("own", own.data(), own.size(), nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_pair("pair", pair[0], pair[1], page), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(nullptr), PERDURE_OK) << perdure_last_error();
  for (int iteration = 1; iteration < 6; ++iteration) {
    std::memset(pair[iteration % 2], iteration, page);
    for (std::size_t size = 16; size < 100'000; size *= 3) std::vector<char>(size, 'x').swap(own);
    ASSERT_EQ(perdure_ipv_resize("own", own.data(), own.size()), PERDURE_OK);
    ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK) << perdure_last_error();
  }
  perdure_ipv_free(pair[0]);
  ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(perdure_ipv_close(), PERDURE_OK);
  EXPECT_EQ(perdure_close(pool), PERDURE_OK);
  perdure_ipv_free(pair[1]);
}

constexpr Case cases[] = {{"copy", PERDURE_IPV_COPY, true, -1, 64 * page},
                          {"stream", PERDURE_IPV_STREAM, true, -1, 64 * page},
                          {"copy_beside", PERDURE_IPV_COPY, true, 1, 64 * page},
                          {"stream_beside", PERDURE_IPV_STREAM, true, 1, 64 * page},
                          {"copy_at_once", PERDURE_IPV_COPY, false, -1, 64 * page},
                          {"stream_at_once", PERDURE_IPV_STREAM, false, -1, 64 * page},
                          {"small", PERDURE_IPV_STREAM, true, -1, 2 * page},
                          {"part_of_a_page", PERDURE_IPV_STREAM, true, -1, 2 * page + 1808},
                          {"part_of_a_page_beside", PERDURE_IPV_COPY, true, 1, 2 * page + 1808}};
INSTANTIATE_TEST_SUITE_P(Ways, IpvFreed, testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
