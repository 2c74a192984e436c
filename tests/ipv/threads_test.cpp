// SPDX-License-Identifier: BSD-3-Clause
//
// A thread stores while another one's fault lets the address be stored to.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "model_job.hpp"

namespace perdure {
namespace {

// An object whose copying outlasts what the scheduler gives a thread at a time, so that the other
// one runs meanwhile on a busy machine, too.
constexpr int iterations = 10;
constexpr std::uint64_t object_bytes = 16 << 20;

// The kernel's stores are refused, instead of faulting, until the address can be stored to. So this
// one comes at the first moment at which a store is possible, and it must stay.
TEST(IpvThreads, a_store_behind_the_switch_is_not_overwritten_by_old_contents) {
  for (const Tier tier : {PERDURE_IPV_COPY, PERDURE_IPV_STREAM}) {
    ModelShape shape;
    shape.bytes = object_bytes;
    shape.tier = tier;
    ModelJob job(shape, model_device(shape));
    ModelVersion fresh;
    fresh.bytes.resize(shape.bytes);
    ASSERT_TRUE(job.start(fresh).ok());
    ASSERT_TRUE(job.persist().ok());
    const int source = ::memfd_create("stores", 0);
    for (int iteration = 1; iteration <= iterations; ++iteration) {
      const auto value = static_cast<std::uint8_t>(iteration);
      ASSERT_EQ(::pwrite(source, &value, 1, 0), 1);
      std::atomic<bool> tries{false};
      const std::size_t last = shape.bytes - 1;  // what is copied last
      std::thread other([&] {
        do {
          tries = true;
        } while (::pread(source, job.object().address() + last, 1, 0) != 1 && errno == EFAULT);
      });
      while (!tries) std::this_thread::yield();
      job.address()[0] = value;  // this thread's fault
      other.join();
      ASSERT_EQ(job.address()[last], value) << tier_name(tier) << ", iteration " << iteration;
      ASSERT_TRUE(job.persist().ok());
    }
    ::close(source);
  }
}

// As a receive that is pending across a persistence point would, from within the commit.
TEST(IpvThreadsDeathTest, a_store_by_the_committing_thread_ends_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ModelShape shape;
  shape.tier = PERDURE_IPV_STREAM;
  EXPECT_DEATH(
      {
        ModelJob job(shape, model_device(shape));
        ModelVersion fresh;
        fresh.bytes.resize(shape.bytes);
        (void)job.start(fresh);
        job.address()[0] = 1;
        job.device().on_fence = [&](CrashDevice&) { job.address()[1] = 1; };
        (void)job.persist();
        (void)job.set().finish();
      },
      "pending across perdure_ipv_persist");
}

}  // namespace
}  // namespace perdure
