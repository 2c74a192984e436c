// SPDX-License-Identifier: BSD-3-Clause
//
// Stores that nobody announced, reads while views change, faults that are not ours, and the kernel,
// which can't store to what is protected. Through perdure.h, on a pool in a directory.
// ctest: DEPS shared
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

constexpr std::size_t object_bytes = 512 * 1024 + 4096;

// Installed before the first object: faults that are not an object's come here.
std::atomic<int> foreign_faults{0};
sigjmp_buf way_out;
void on_foreign_fault(int) {
  ++foreign_faults;
  siglongjmp(way_out, 1);
}

class IpvGuard : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    struct sigaction action{};
    action.sa_handler = on_foreign_fault;
    ::sigaction(SIGSEGV, &action, nullptr);
  }
  void SetUp() override {
    memory_ = static_cast<unsigned char*>(perdure_ipv_alloc(object_bytes));
    ASSERT_NE(memory_, nullptr);
    for (std::size_t i = 0; i < object_bytes; ++i) memory_[i] = start_value(i);
    open();
  }
  void TearDown() override {
    close();
    perdure_ipv_free(memory_);
  }
  static unsigned char start_value(std::size_t i) {
    return static_cast<unsigned char>(i * 7 + i / 255);
  }
  void open() {
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
    perdure_ipv_options options{};
    options.helper = GetParam() / 10 % 10 == 1 ? 1 : -1;
    const std::string remap = GetParam() / 100 % 10 == 1 ? "off" : "on";
    ::setenv("PERDURE_IPV", ("remap=" + remap + ",lag=" + (lags() ? "1" : "0")).c_str(), 1);
    ASSERT_EQ(perdure_ipv_open(pool_, &options), PERDURE_OK) << perdure_last_error();
    const perdure_ipv_object_options given{GetParam() % 10, 0};
    ASSERT_EQ(perdure_ipv_object("u", memory_, object_bytes, &given), PERDURE_OK)
        << perdure_last_error();
    ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
  }
  static bool lags() { return GetParam() < 1000; }
  static bool streams() { return GetParam() % 10 == PERDURE_IPV_STREAM; }
  void close() {
    EXPECT_EQ(perdure_ipv_close(), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(perdure_close(pool_), PERDURE_OK) << perdure_last_error();
  }
  void persist() { ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK) << perdure_last_error(); }
  // What a restart brings back, in other memory.
  std::vector<unsigned char> restarted() {
    close();
    std::vector<unsigned char> before(memory_, memory_ + object_bytes);
    std::memset(memory_, 0xee, object_bytes);
    open();
    return before;
  }
  perdure_ipv_object_status status() const {
    perdure_ipv_object_status status{};
    EXPECT_EQ(perdure_ipv_status("u", &status), PERDURE_OK);
    return status;
  }

  perdure_test::TemporaryDirectory directory_;
  unsigned char* memory_ = nullptr;
  perdure_pool* pool_ = nullptr;
  std::uint64_t version_ = 0;
};

// What compiled loops look at before they ask for rows.
TEST_P(IpvGuard, the_bounds_hold_an_object_while_it_takes_rows) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory_);
  std::set<int> tiers;
  for (int iteration = 0; iteration < 20; ++iteration) {
    const bool takes = status().tier == PERDURE_IPV_STREAM;
    EXPECT_EQ(perdure_ipv_low, takes ? first : 0) << iteration;
    EXPECT_EQ(perdure_ipv_high, takes ? first + object_bytes : 0) << iteration;
    tiers.insert(status().tier);
    if (iteration % 2 == 0) perdure_ipv_plain(memory_);  // does no harm in any tier
    memory_[0] = static_cast<unsigned char>(iteration);
    persist();
  }
  const int only = GetParam() % 10 == PERDURE_IPV_STREAM ? PERDURE_IPV_STREAM : PERDURE_IPV_COPY;
  EXPECT_EQ(tiers, std::set<int>{only});  // nothing is taken that was not asked for
  (void)restarted();
  EXPECT_EQ(memory_[0], 19);
}

TEST_P(IpvGuard, stores_of_several_threads_at_once_are_part_of_the_version) {
  constexpr std::size_t threads = 6;
  constexpr int iterations = 30;
  persist();
  std::barrier<> begin(threads + 1);
  std::barrier<> end(threads + 1);
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int iteration = 1; iteration <= iterations; ++iteration) {
        begin.arrive_and_wait();
        for (std::size_t i = t; i < object_bytes; i += threads * 61) {
          memory_[i] = static_cast<unsigned char>(iteration + static_cast<int>(t));
        }
        end.arrive_and_wait();
      }
    });
  }
  std::vector<unsigned char> expected(memory_, memory_ + object_bytes);
  for (int iteration = 1; iteration <= iterations; ++iteration) {
    begin.arrive_and_wait();
    end.arrive_and_wait();
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = t; i < object_bytes; i += threads * 61) {
        expected[i] = static_cast<unsigned char>(iteration + static_cast<int>(t));
      }
    }
    ASSERT_EQ(std::memcmp(memory_, expected.data(), object_bytes), 0) << "iteration " << iteration;
    persist();
  }
  for (std::thread& thread : all) thread.join();
  const auto most = static_cast<std::uint64_t>(iterations);  // one an iteration, or none
  EXPECT_EQ(status().guard_faults, streams() ? most : 0U);
  (void)restarted();
  EXPECT_EQ(std::memcmp(memory_, expected.data(), object_bytes), 0);
}

TEST_P(IpvGuard, stores_of_the_c_library_are_part_of_the_version) {
  persist();
  std::memset(memory_ + 100, 0x5a, object_bytes - 300);
  persist();
  std::memmove(memory_ + 64, memory_, 4096);
  persist();
  const std::vector<unsigned char> before = restarted();
  EXPECT_EQ(std::memcmp(memory_, before.data(), object_bytes), 0);
  EXPECT_EQ(memory_[object_bytes - 300], 0x5a);
}

TEST_P(IpvGuard, reads_never_fail_while_the_address_shows_another_copy) {
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::memset(memory_, 1, object_bytes);
  // A byte that no iteration changes must always be read as it is.
  std::thread reader([&] {
    const volatile unsigned char* at = memory_;
    while (!stop) {
      for (std::size_t i = 4096; i < object_bytes; i += 8192) {
        if (at[i] != 1) ++torn;
      }
    }
  });
  for (int iteration = 0; iteration < 200; ++iteration) {
    memory_[static_cast<std::size_t>(iteration)] = static_cast<unsigned char>(iteration);
    persist();
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

TEST_P(IpvGuard, a_fault_that_is_not_an_objects_goes_to_the_handler_before) {
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int before = foreign_faults;
  if (sigsetjmp(way_out, 1) == 0) *static_cast<volatile char*>(page) = 1;
  EXPECT_EQ(foreign_faults, before + 1);
  ::munmap(page, 4096);
  memory_[0] = 9;  // and ours still come to us
  EXPECT_EQ(memory_[0], 9);
}

// In COPY it always can, where the kernel says which pages were written.
TEST_P(IpvGuard, the_kernel_stores_to_a_streamed_object_once_it_was_touched) {
  persist();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "perdure", 7), 7);
  if (streams()) {
    errno = 0;
    EXPECT_EQ(::read(ends[0], memory_ + 10, 7), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(memory_[10], start_value(10));
  }
  perdure_ipv_touch(memory_ + 10, 7);
  EXPECT_EQ(::read(ends[0], memory_ + 10, 7), 7);
  persist();
  ::close(ends[0]);
  ::close(ends[1]);
  (void)restarted();
  EXPECT_EQ(std::memcmp(memory_ + 10, "perdure", 7), 0);
}

TEST_P(IpvGuard, a_pinned_object_takes_stores_of_the_kernel_at_any_time) {
  if (streams()) {  // its pages move
    EXPECT_EQ(perdure_ipv_pin(memory_), PERDURE_E_STATE);
    EXPECT_EQ(perdure_ipv_unpin(memory_), PERDURE_E_STATE);
    return;
  }
  ASSERT_EQ(perdure_ipv_pin(memory_), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(status().tier, PERDURE_IPV_COPY);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (char iteration = 'a'; iteration < 'f'; ++iteration) {
    ASSERT_EQ(::write(ends[1], &iteration, 1), 1);
    ASSERT_EQ(::read(ends[0], memory_ + 77, 1), 1);
    persist();
  }
  ASSERT_EQ(perdure_ipv_unpin(memory_), PERDURE_OK);
  EXPECT_EQ(perdure_ipv_unpin(memory_), PERDURE_E_STATE);
  persist();
  ::close(ends[0]);
  ::close(ends[1]);
  (void)restarted();
  EXPECT_EQ(memory_[77], 'e');
}

// Tiers; the same with a thread that flushes early (10), as on an old kernel (100), and
// without lag (1000).
INSTANTIATE_TEST_SUITE_P(Tiers, IpvGuard, testing::Values(0, 1, 2, 11, 12, 101, 112, 1001, 1002));

}  // namespace
}  // namespace perdure
