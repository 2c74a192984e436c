// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.h on a file, as a C program uses it: what is committed comes back in the next run.
// ctest: NAME pool_c_test
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"

namespace {

using perdure_test::TemporaryDirectory;

constexpr std::uint64_t cells = 20000;

// One run of a small job: opens, restarts, does `steps` steps, commits each.
struct Job {
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  std::uint64_t step = 0;
  std::uint64_t version = 0;

  int open(const std::string& path, perdure_mode mode, const perdure_options* options = nullptr) {
    if (const int code = perdure_open(path.c_str(), options, &pool); code != 0) return code;
    if (const int code =
            perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, mode, nullptr, &u);
        code != 0) {
      return code;
    }
    if (const int code = perdure_scalar(pool, "iteration", &step, sizeof step); code != 0) {
      return code;
    }
    return perdure_restart(pool, &version);
  }
  void compute(perdure_mode mode) {
    auto* to = static_cast<double*>(perdure_working(u));
    const auto* from = static_cast<const double*>(perdure_consistent(u));
    for (std::uint64_t i = 0; i < cells; ++i) to[i] = from[i] + static_cast<double>(i);
    if (mode == PERDURE_LOG) perdure_mark(u, 0, cells);
    ++step;
  }
  bool holds(std::uint64_t steps) const {
    const auto* now = static_cast<const double*>(perdure_consistent(u));
    for (std::uint64_t i = 0; i < cells; ++i) {
      if (now[i] != static_cast<double>(i * steps)) return false;
    }
    return step == steps;
  }
};

class EachMode : public testing::TestWithParam<perdure_mode> {};
std::string mode_text(const testing::TestParamInfo<perdure_mode>& tested) {
  return tested.param == PERDURE_COPY ? "copy" : tested.param == PERDURE_TWIN ? "twin" : "log";
}
INSTANTIATE_TEST_SUITE_P(Modes, EachMode, testing::Values(PERDURE_COPY, PERDURE_TWIN, PERDURE_LOG),
                         mode_text);

TEST_P(EachMode, what_was_committed_comes_back_in_the_next_run) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  for (std::uint64_t run = 0; run < 4; ++run) {
    Job job;
    ASSERT_EQ(job.open(path, GetParam()), 0) << perdure_last_error();
    EXPECT_EQ(job.version, run * 3);
    EXPECT_TRUE(job.holds(run * 3));
    for (int i = 0; i < 3; ++i) {
      job.compute(GetParam());
      ASSERT_EQ(perdure_commit(job.pool, &job.version), 0) << perdure_last_error();
    }
    job.compute(GetParam());  // never committed: lost
    ASSERT_EQ(perdure_close(job.pool), 0);
  }
}

TEST_P(EachMode, asynchronous_commits_come_back) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  {
    Job job;
    ASSERT_EQ(job.open(path, GetParam()), 0);
    for (int i = 0; i < 5; ++i) {
      job.compute(GetParam());
      ASSERT_EQ(perdure_commit_begin(job.pool), 0) << perdure_last_error();
      // Here the application would compute. A twin array is committed where it is.
      const bool twin = GetParam() == PERDURE_TWIN;
      ASSERT_EQ(perdure_before_write(job.u), twin ? PERDURE_E_STATE : PERDURE_OK);
      const double later[] = {-7, -7};
      ASSERT_EQ(perdure_write(job.u, 0, 2, later), PERDURE_E_STATE);  // of twin arrays, but not now
      EXPECT_EQ(std::strstr(perdure_last_error(), "after perdure_commit_wait()") != nullptr, twin)
          << perdure_last_error();
      if (i == 4) break;
      ASSERT_EQ(perdure_commit_wait(job.pool, &job.version), 0) << perdure_last_error();
      EXPECT_EQ(job.version, job.step);
    }
    ASSERT_EQ(perdure_close(job.pool), 0);  // waits for the fifth
  }
  Job job;
  ASSERT_EQ(job.open(path, GetParam()), 0);
  EXPECT_EQ(job.version, 5U);
  EXPECT_TRUE(job.holds(5));
  perdure_close(job.pool);
}

// SIGKILL at random moments of a process that commits as fast as it can.
TEST_P(EachMode, a_killed_process_loses_nothing_that_it_had_committed) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  for (int kill_round = 0; kill_round < 15; ++kill_round) {
    int report[2];
    ASSERT_EQ(::pipe(report), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Job job;
      if (job.open(path, GetParam()) != 0 || !job.holds(job.version)) ::_exit(3);
      for (;;) {
        job.compute(GetParam());
        if (perdure_commit(job.pool, &job.version) != 0) ::_exit(4);
        if (::write(report[1], &job.version, sizeof job.version) < 0) ::_exit(5);
      }
    }
    ::close(report[1]);
    ::usleep(20000 + static_cast<unsigned>(kill_round) * 1777);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    std::uint64_t acknowledged = 0;
    std::uint64_t version = 0;
    while (::read(report[0], &version, sizeof version) == sizeof version) acknowledged = version;
    ::close(report[0]);
    Job job;
    ASSERT_EQ(job.open(path, GetParam()), 0) << perdure_last_error();
    EXPECT_GE(job.version, acknowledged);
    EXPECT_TRUE(job.holds(job.version));
    perdure_close(job.pool);
  }
}

TEST(Interface, the_box_of_an_array_must_lie_in_the_whole) {
  const TemporaryDirectory directory;
  perdure_pool* pool = nullptr;
  ASSERT_EQ(perdure_open((directory / "pool").c_str(), nullptr, &pool), 0);
  perdure_array* u = nullptr;
  const std::uint64_t shape[] = {4, 10};
  ASSERT_EQ(perdure_array_open(pool, "u", PERDURE_DOUBLE, 2, shape, PERDURE_COPY, nullptr, &u), 0);
  const std::uint64_t global[] = {8, 10};
  const std::uint64_t last[] = {4, 0};
  const std::uint64_t beyond[] = {5, 0};
  const std::uint64_t far[] = {UINT64_MAX, 0};
  EXPECT_EQ(perdure_array_box(u, global, last), 0) << perdure_last_error();
  EXPECT_EQ(perdure_array_box(u, global, beyond), PERDURE_E_INVALID);
  EXPECT_NE(std::string(perdure_last_error()).find("from 5 on"), std::string::npos);
  EXPECT_EQ(perdure_array_box(u, global, far), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_array_box(u, global, nullptr), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_array_box(nullptr, global, last), PERDURE_E_INVALID);
  perdure_close(pool);
}

TEST(Interface, bad_arguments_are_errors_with_a_sentence) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  perdure_pool* pool = nullptr;
  perdure_array* array = nullptr;
  std::uint64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(perdure_open(nullptr, nullptr, &pool), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_open("", nullptr, &pool), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_open(path.c_str(), nullptr, nullptr), PERDURE_E_INVALID);
  perdure_options options{};
  options.flags = 1U << 20;
  EXPECT_EQ(perdure_open(path.c_str(), &options, &pool), PERDURE_E_INVALID);
  options.flags = PERDURE_MUST_EXIST | PERDURE_DISCARD;
  EXPECT_EQ(perdure_open(path.c_str(), &options, &pool), PERDURE_E_INVALID);
  options.flags = PERDURE_MUST_EXIST;
  EXPECT_EQ(perdure_open(path.c_str(), &options, &pool), PERDURE_E_NOT_FOUND);
  options.flags = 0;
  options.emulate = "no-such-part";
  EXPECT_EQ(perdure_open(path.c_str(), &options, &pool), PERDURE_E_NOT_FOUND);
  EXPECT_NE(std::string(perdure_last_error()).find("no-such-part"), std::string::npos);
  EXPECT_EQ(pool, nullptr);

  ASSERT_EQ(perdure_open(path.c_str(), nullptr, &pool), 0) << perdure_last_error();
  const auto open = [&](const char* name, int type, unsigned dimensions, int mode,
                        const perdure_array_options* extra = nullptr) {
    return perdure_array_open(pool, name, type, dimensions, shape, mode, extra, &array);
  };
  EXPECT_EQ(open("u", 0, 1, PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_EQ(open("u", PERDURE_TEXT, 1, PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_EQ(open("u", PERDURE_BYTE, 0, PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_EQ(open("u", PERDURE_BYTE, 9, PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, 5), PERDURE_E_INVALID);
  EXPECT_EQ(open("a\xff", PERDURE_BYTE, 1, PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_EQ(open(nullptr, PERDURE_BYTE, 1, PERDURE_COPY), PERDURE_E_INVALID);
  perdure_array_options both{};
  both.flags = PERDURE_CHECKSUM | PERDURE_NO_CHECKSUM;
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_COPY, &both), PERDURE_E_INVALID);
  perdure_array_options marks{};
  marks.flags = PERDURE_MARKS;
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_COPY, &marks), PERDURE_E_INVALID);
  perdure_array_options buffer{};
  buffer.buffer = shape;
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_TWIN, &buffer), PERDURE_E_INVALID);
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_FLUSH, &buffer), PERDURE_E_INVALID);
  perdure_array_options checked{};
  checked.flags = PERDURE_CHECKSUM;
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_FLUSH, &checked), PERDURE_E_INVALID);
  perdure_array_options either{};
  either.flags = PERDURE_MARKS | PERDURE_COMPARE;
  EXPECT_EQ(open("u", PERDURE_BYTE, 1, PERDURE_LOG, &either), PERDURE_E_INVALID);
  EXPECT_EQ(array, nullptr);

  ASSERT_EQ(open("u", PERDURE_INT32, 1, PERDURE_LOG, &marks), 0) << perdure_last_error();
  EXPECT_EQ(open("u", PERDURE_INT32, 1, PERDURE_LOG, &marks), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_working(array), nullptr);  // before restart
  EXPECT_EQ(perdure_mark(array, 0, 2), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_mark(array, ~std::uint64_t{0}, 2), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_write(array, 0, 1, shape), PERDURE_E_STATE);
  EXPECT_EQ(perdure_commit(pool, nullptr), PERDURE_E_STATE);
  EXPECT_EQ(perdure_commit_wait(pool, nullptr), PERDURE_E_STATE);
  EXPECT_NE(std::strlen(perdure_last_error()), 0U);
  EXPECT_EQ(perdure_close(pool), 0);
  EXPECT_EQ(perdure_close(nullptr), 0);
  EXPECT_STRNE(perdure_strerror(PERDURE_E_DAMAGED), perdure_strerror(PERDURE_E_IO));
}

// Which no tracker of pages could watch.
TEST(Interface, a_log_array_of_any_size_lies_where_malloc_has_put_it) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  std::vector<double> list;
  perdure_array_options options{};
  const auto open = [&](perdure_pool*& pool, perdure_array*& array) {
    const std::uint64_t count = list.size();
    options.buffer = list.data();
    if (const int code = perdure_open(path.c_str(), nullptr, &pool); code != 0) return code;
    return perdure_array_open(pool, "list", PERDURE_DOUBLE, 1, &count, PERDURE_LOG, &options,
                              &array);
  };
  perdure_pool* pool = nullptr;
  perdure_array* array = nullptr;
  list.assign(5000, 1);
  ASSERT_EQ(open(pool, array), 0) << perdure_last_error();
  ASSERT_EQ(perdure_restart(pool, nullptr), 0) << perdure_last_error();
  for (std::uint64_t count : {10000U, 30000U, 4000U, 20000U}) {
    list.resize(count, static_cast<double>(count));
    ASSERT_EQ(perdure_array_resize(array, &count, list.data()), 0) << perdure_last_error();
    ASSERT_EQ(perdure_commit(pool, nullptr), 0) << perdure_last_error();
    list[count - 1] = list[7] = -static_cast<double>(count);
    ASSERT_EQ(perdure_commit(pool, nullptr), 0) << perdure_last_error();
  }
  ASSERT_EQ(perdure_close(pool), 0);
  const std::vector<double> committed = list;
  list.assign(list.size(), 0);
  ASSERT_EQ(open(pool, array), 0) << perdure_last_error();
  ASSERT_EQ(perdure_restart(pool, nullptr), 0) << perdure_last_error();
  EXPECT_EQ(list, committed);
  ASSERT_EQ(perdure_close(pool), 0);
}

TEST(Interface, versions_are_kept_listed_restored_and_deleted) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  perdure_options options{};
  options.keep = 3;
  Job job;
  ASSERT_EQ(job.open(path, PERDURE_COPY, &options), 0) << perdure_last_error();
  std::size_t count = 99;
  ASSERT_EQ(perdure_versions(job.pool, nullptr, 0, &count), 0);
  EXPECT_EQ(count, 0U);
  for (int i = 0; i < 5; ++i) {
    job.compute(PERDURE_COPY);
    ASSERT_EQ(perdure_commit(job.pool, &job.version), 0) << perdure_last_error();
  }
  EXPECT_EQ(perdure_restore(job.pool, 2), PERDURE_E_NOT_FOUND);
  EXPECT_NE(std::string(perdure_last_error()).find("5, 4, 3"), std::string::npos);
  EXPECT_EQ(perdure_delete_version(job.pool, 5), PERDURE_E_STATE);
  ASSERT_EQ(perdure_restore(job.pool, 3), 0) << perdure_last_error();
  EXPECT_TRUE(job.holds(3));
  ASSERT_EQ(perdure_delete_version(job.pool, 4), 0) << perdure_last_error();
  perdure_version_info versions[4] = {};
  ASSERT_EQ(perdure_versions(job.pool, versions, 1, &count), 0);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(versions[0].version, 5U);
  EXPECT_EQ(versions[0].abandoned, 1);
  EXPECT_EQ(versions[1].version, 0U);  // beyond the capacity
  EXPECT_EQ(perdure_versions(job.pool, nullptr, 1, &count), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_versions(job.pool, versions, 4, nullptr), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_restore(nullptr, 1), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_delete_version(nullptr, 1), PERDURE_E_INVALID);
  ASSERT_EQ(perdure_close(job.pool), 0);
  Job other;
  options.keep = 2;
  EXPECT_EQ(other.open(path, PERDURE_COPY, &options), PERDURE_E_SHAPE);
  EXPECT_NE(std::string(perdure_last_error()).find("3"), std::string::npos);
  options.keep = 64;
  EXPECT_EQ(other.open(path, PERDURE_COPY, &options), PERDURE_E_INVALID);
  ASSERT_EQ(other.open(path, PERDURE_COPY), 0) << perdure_last_error();  // as it is
  EXPECT_EQ(other.version, 3U);
  EXPECT_TRUE(other.holds(3));
  other.compute(PERDURE_COPY);
  ASSERT_EQ(perdure_commit(other.pool, &other.version), 0);
  EXPECT_EQ(other.version, 6U);
  ASSERT_EQ(perdure_versions(other.pool, versions, 4, &count), 0);
  EXPECT_EQ(versions[0].parent, 3U);
  perdure_close(other.pool);
}

TEST(Interface, an_emulated_part_adds_the_same_time_in_every_run) {
  std::uint64_t model_ns[2] = {0, 0};
  for (std::uint64_t& ns : model_ns) {
    const TemporaryDirectory directory;
    perdure_options options{};
    options.emulate = "paper-nvm-9.5,commit_latency_ns=2000";
    Job job;
    ASSERT_EQ(job.open(directory / "pool", PERDURE_COPY, &options), 0) << perdure_last_error();
    for (int i = 0; i < 3; ++i) {
      job.compute(PERDURE_COPY);
      ASSERT_EQ(perdure_commit(job.pool, nullptr), 0);
    }
    perdure_pool_status status{};
    ASSERT_EQ(perdure_status(job.pool, &status), 0);
    ns = status.model_ns;
    perdure_close(job.pool);
  }
  EXPECT_EQ(model_ns[0], model_ns[1]);
  EXPECT_GT(model_ns[0], 3 * 3 * 2000U);  // three fences a commit
}

TEST(Interface, status_says_what_survives) {
  const TemporaryDirectory directory;
  Job job;
  ASSERT_EQ(job.open(directory / "pool", PERDURE_COPY), 0);
  perdure_pool_status status{};
  ASSERT_EQ(perdure_status(job.pool, &status), 0);
  EXPECT_EQ(status.survives_power_failure, 0);  // tmpfs
  perdure_close(job.pool);
}

TEST(Interface, what_was_waited_for_is_in_the_directory_of_the_drain) {
  const TemporaryDirectory directory;
  const std::string levels = "every=1;drain=" + directory / "drain";
  perdure_options options{};
  options.levels = levels.c_str();
  Job job;
  ASSERT_EQ(job.open(directory / "pool", PERDURE_COPY, &options), 0) << perdure_last_error();
  std::uint64_t arrived = 7;
  ASSERT_EQ(perdure_levels_wait(job.pool, &arrived), 0);
  EXPECT_EQ(arrived, 0U);
  for (std::uint64_t version = 1; version < 4; ++version) {
    job.compute(PERDURE_COPY);
    ASSERT_EQ(perdure_commit(job.pool, nullptr), 0);
    perdure_pool_status status{};
    ASSERT_EQ(perdure_status(job.pool, &status), 0);
    EXPECT_EQ(status.levels_under_way, 1);
    ASSERT_EQ(perdure_levels_wait(job.pool, &arrived), 0) << perdure_last_error();
    EXPECT_EQ(arrived, version);
    ASSERT_EQ(perdure_status(job.pool, &status), 0);
    EXPECT_EQ(status.levels_under_way, 0);
  }
  perdure_close(job.pool);
}

TEST(Interface, without_levels_nothing_is_waited_for) {
  const TemporaryDirectory directory;
  Job job;
  ASSERT_EQ(job.open(directory / "pool", PERDURE_COPY), 0);
  job.compute(PERDURE_COPY);
  ASSERT_EQ(perdure_commit(job.pool, nullptr), 0);
  std::uint64_t arrived = 7;
  EXPECT_EQ(perdure_levels_wait(job.pool, &arrived), 0);
  EXPECT_EQ(arrived, 0U);
  EXPECT_EQ(perdure_levels_wait(nullptr, nullptr), PERDURE_E_INVALID);
  perdure_close(job.pool);
}

}  // namespace
