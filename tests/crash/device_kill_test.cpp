// SPDX-License-Identifier: BSD-3-Clause
//
// A job with an array in memory of a GPU is killed at each call of the driver, and in the middle of
// each transfer: what a run without a GPU finds afterwards is a version that was acknowledged, or
// the one that was under way, whole.
// ctest: LIBS perdure_shared LABELS truth TIMEOUT 300 LONG 900
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <random>

#include "device/testing/fake_gpu.hpp"
#include "perdure/perdure.h"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace {

using perdure::Cases;
using perdure::slow_tests;
using perdure::some_cases;
using perdure_test::TemporaryDirectory;

constexpr std::uint64_t words = 2 * 8192 + 3 * 512 + 5;  // blocks, pages, and a rest
constexpr std::uint64_t versions = 5;
using Words = std::vector<std::int64_t>;

Words words_of(std::uint64_t version) {
  Words all(words);
  std::mt19937_64 random(1);
  for (std::uint64_t at = 1; at <= version; ++at) {
    for (int i = 0; i < 7; ++i) all[random() % words] = static_cast<std::int64_t>(at) * 100 + i;
    all[words - 1] = static_cast<std::int64_t>(at);
  }
  return all;
}

struct Array {
  perdure_pool* pool = nullptr;
  perdure_array* array = nullptr;
  std::uint64_t version = 0;
  int open(const std::string& path, int mode, void* buffer) {
    perdure_array_options options{};
    options.buffer = buffer;
    int code = perdure_open(path.c_str(), nullptr, &pool);
    if (code == 0) {
      code = perdure_array_open(pool, "u", PERDURE_INT64, 1, &words, mode, &options, &array);
    }
    return code == 0 ? perdure_restart(pool, &version) : code;
  }
};

// The process that is killed. A byte goes to `acknowledged` after each commit.
int run_job(const std::string& path, int mode, int acknowledged) {
  perdure::FakeGpu gpu;
  std::byte* const buffer = gpu.allocate(words * 8);
  void* const stream = gpu.make_stream();
  Array u;
  if (u.open(path, mode, buffer) != 0) return 2;
  if (perdure_stream(u.pool, PERDURE_STREAM_CUDA, stream) != 0) return 3;
  const Words none(words, -1);
  for (std::uint64_t version = u.version + 1; version <= versions; ++version) {
    const Words contents = words_of(version);
    gpu.store(buffer, contents.data(), words * 8, stream);
    if (version % 2 == 0) {
      if (perdure_commit(u.pool, nullptr) != 0) return 4;
    } else {
      if (perdure_commit_begin(u.pool) != 0) return 5;
      gpu.store(buffer, none.data(), words * 8, stream);
      if (perdure_commit_wait(u.pool, nullptr) != 0) return 6;
    }
    if (::write(acknowledged, "v", 1) != 1) return 7;
    gpu.synchronise(stream);
  }
  return perdure_close(u.pool) == 0 ? 0 : 8;
}

// A job that dies as `variable` = `at` says; true if it came to its end. It is started anew, as a
// process has one driver.
bool run_killed(const TemporaryDirectory& directory, int mode, const char* variable,
                std::uint64_t at) {
  const std::string acknowledged = directory / "acknowledged";
  const int fd = ::open(acknowledged.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::setenv(variable, std::to_string(at).c_str(), 1);
    ::setenv("FAKE_CUDA_QUIET", "1", 1);
    ::setenv("KILLED_JOB_POOL", (directory / "pool").c_str(), 1);
    ::setenv("KILLED_JOB_MODE", std::to_string(mode).c_str(), 1);
    ::setenv("KILLED_JOB_FD", std::to_string(fd).c_str(), 1);
    ::execl("/proc/self/exe", "crash_device_kill_test", "--gtest_filter=KilledJob.runs", nullptr);
    ::_exit(127);
  }
  ::close(fd);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  return false;
}

// Nothing to be seen where it is not asked for.
TEST(KilledJob, runs) {
  const char* const path = std::getenv("KILLED_JOB_POOL");
  if (path == nullptr) return;  // the tests below start it
  const int fd = std::atoi(std::getenv("KILLED_JOB_FD"));
  const int code = run_job(path, std::atoi(std::getenv("KILLED_JOB_MODE")), fd);
  if (code != 0) std::cerr << perdure_last_error() << "\n";
  ::_exit(code);
}

class DeviceKill : public testing::TestWithParam<perdure_mode> {
 protected:
  // Until a job isn't killed any more. How many were: one of four that can be, if not slow.
  static std::uint64_t kill_each(const char* variable) {
    const Cases cases = some_cases(1, 4);
    std::uint64_t killed = 0;
    for (std::uint64_t at = cases.first;; at += cases.step) {
      TemporaryDirectory directory;
      const bool ended = run_killed(directory, GetParam(), variable, at);
      check(directory, at);
      if (ended) return killed;
      if (++killed % 5 != 0) continue;
      // And goes on, on a GPU.
      EXPECT_TRUE(run_killed(directory, GetParam(), "FAKE_CUDA_SEED", at));
      Array u;
      EXPECT_EQ(u.open(directory / "pool", GetParam(), nullptr), 0) << perdure_last_error();
      EXPECT_EQ(u.version, versions);
      EXPECT_EQ(contents(u), words_of(versions));
      perdure_close(u.pool);
    }
  }
  static Words contents(const Array& u) {
    const auto* const found = static_cast<const std::int64_t*>(perdure_consistent(u.array));
    return {found, found + words};
  }
  static void check(const TemporaryDirectory& directory, std::uint64_t at) {
    const std::uint64_t acknowledged = perdure_test::read_file(directory / "acknowledged").size();
    Array u;
    ASSERT_EQ(u.open(directory / "pool", GetParam(), nullptr), 0)
        << perdure_last_error() << ", killed at " << at;
    EXPECT_GE(u.version, acknowledged) << at;
    EXPECT_LE(u.version, acknowledged + 1) << at;
    EXPECT_EQ(contents(u), words_of(u.version)) << "version " << u.version << ", killed at " << at;
    perdure_close(u.pool);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKill, testing::Values(PERDURE_COPY, PERDURE_LOG),
                         [](const auto& tested) {
                           return tested.param == PERDURE_COPY ? "copy" : "log";
                         });

TEST_P(DeviceKill, at_each_call_of_the_driver) {
  const std::uint64_t killed = kill_each("FAKE_CUDA_KILL_AT");
  std::cout << killed << " kills\n";
  EXPECT_GE(killed, slow_tests() ? 100U : 25U);
}

TEST_P(DeviceKill, in_the_middle_of_each_transfer) {
  const std::uint64_t killed = kill_each("FAKE_CUDA_KILL_COPY");
  std::cout << killed << " kills\n";
  EXPECT_GE(killed, slow_tests() ? 10U : 2U);
}

}  // namespace
