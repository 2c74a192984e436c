// SPDX-License-Identifier: BSD-3-Clause
//
// What the process of a program may be like: without standard input, output and error, with limits,
// with workers that it forked off. Nothing that was committed is lost by it, and no call waits.
// ctest: LABELS truth
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"

namespace {

using perdure_test::TemporaryDirectory;

constexpr std::uint64_t cells = 1000;

// A job of one array whose first element counts the commits.
class Job {
 public:
  // The first error, or 0.
  int start(const std::string& path, const perdure_options* options = nullptr) {
    int code = perdure_open(path.c_str(), options, &pool_);
    if (code == 0) {
      code = perdure_array_open(pool_, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, nullptr, &u_);
    }
    return code == 0 ? perdure_restart(pool_, &version_) : code;
  }
  int commit() {
    value() += 1;
    return perdure_commit(pool_, &version_);
  }
  int close() { return perdure_close(std::exchange(pool_, nullptr)); }
  ~Job() {
    if (pool_ != nullptr) perdure_close(pool_);
  }

  double& value() { return *static_cast<double*>(perdure_working(u_)); }
  std::uint64_t version() const { return version_; }

 private:
  perdure_pool* pool_ = nullptr;
  perdure_array* u_ = nullptr;
  std::uint64_t version_ = 0;
};

// The exit status of a child that does `act`.
int in_child(const std::function<int()>& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool said(const std::string& words) {
  const std::string message = perdure_last_error();
  const bool there = message.find(words) != std::string::npos;
  if (!there) std::fprintf(stderr, "the message was: %s\n", message.c_str());
  return there;
}

mode_t mode_of(const std::string& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777U;
}

void expect_version(const std::string& pool, std::uint64_t version) {
  Job job;
  ASSERT_EQ(job.start(pool), 0) << perdure_last_error();
  EXPECT_EQ(job.version(), version);
  EXPECT_EQ(job.value(), static_cast<double>(version));
}

TEST(ProcessOfAProgram, messages_of_one_without_standard_error_do_not_reach_its_pool) {
  const TemporaryDirectory directory;
  const std::string pool = directory / "pool";
  const int status = in_child([&] {
    for (int standard = 0; standard <= STDERR_FILENO; ++standard) ::close(standard);
    Job job;
    if (job.start(pool) != 0) return 1;
    for (int step = 0; step < 3; ++step) {
      std::fprintf(stderr, "a message that is longer than the magic number of a file\n");
      std::printf("and another one\n");
      std::fflush(stdout);
      if (job.commit() != 0) return 2;
    }
    return job.close() == 0 ? 0 : 3;
  });
  ASSERT_EQ(status, 0);
  expect_version(pool, 3);
}

// The test's own time limit is what ends a wait.
TEST(ProcessOfAProgram, that_opens_a_pool_which_it_has_open_is_told_so_at_once) {
  const TemporaryDirectory directory;
  const std::string pool = directory / "pool";
  ::setenv("PERDURE_LOCK_WAIT_MS", "3600000", 1);
  Job job;
  ASSERT_EQ(job.start(pool), 0) << perdure_last_error();
  perdure_pool* second = nullptr;
  EXPECT_EQ(perdure_open(pool.c_str(), nullptr, &second), PERDURE_E_BUSY);
  EXPECT_TRUE(said("in this process already"));
  EXPECT_EQ(job.commit(), 0);
  EXPECT_EQ(job.close(), 0);
  expect_version(pool, 1);
  ::unsetenv("PERDURE_LOCK_WAIT_MS");
}

TEST(ProcessOfAProgram, that_forked_a_worker_which_outlives_it_leaves_its_pool_unlocked) {
  const TemporaryDirectory directory;
  const std::string pool = directory / "pool";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    Job job;
    if (job.start(pool) != 0 || job.commit() != 0 || job.commit() != 0) ::_exit(1);
    const pid_t worker = ::fork();
    if (worker == 0) {
      if (job.value() != 2) ::_exit(1);  // it still sees what its parent had
      const pid_t own = ::getpid();
      (void)!::write(ends[1], &own, sizeof own);
    }
    for (;;) ::pause();
  }
  pid_t worker = 0;
  ASSERT_EQ(::read(ends[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  ::kill(program, SIGKILL);
  ASSERT_EQ(::waitpid(program, nullptr, 0), program);
  expect_version(pool, 2);
  EXPECT_EQ(::kill(worker, SIGKILL), 0) << "it did not outlive the program";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ProcessOfAProgram, that_may_not_make_large_files_gets_an_error_and_leaves_nothing_half_made) {
  const TemporaryDirectory directory;
  const std::string pool = directory / "pool";
  for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{100} << 10U, rlim_t{8} << 20U}) {
    const int status = in_child([&] {
      const rlimit limits{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &limits) != 0) return 1;
      perdure_pool* opened = nullptr;
      int code = perdure_open(pool.c_str(), nullptr, &opened);
      const std::uint64_t many = 10'000'000;
      perdure_array* u = nullptr;
      if (code == 0) {
        code = perdure_array_open(opened, "u", PERDURE_DOUBLE, 1, &many, PERDURE_COPY, nullptr, &u);
      }
      const bool right = code == PERDURE_E_NO_SPACE && said("ulimit -f");
      if (opened != nullptr) perdure_close(opened);
      return right ? 0 : 2;
    });
    EXPECT_EQ(status, 0) << limit;
    if (limit < (rlim_t{1} << 20U)) {
      EXPECT_FALSE(std::filesystem::exists(pool)) << limit;
    }
  }
  Job job;
  EXPECT_EQ(job.start(pool), 0) << perdure_last_error();
}

TEST(ProcessOfAProgram, whose_umask_takes_its_own_rights_makes_files_that_it_can_open_again) {
  for (const mode_t taken : {0277U, 0777U}) {
    const TemporaryDirectory directory;
    const std::string pool = directory / "pool";
    const mode_t before = ::umask(taken);
    Job job;
    EXPECT_EQ(job.start(pool), 0) << perdure_last_error();
    EXPECT_EQ(job.commit(), 0);
    EXPECT_EQ(job.close(), 0);
    ::umask(before);
    EXPECT_EQ(mode_of(pool), 0700U);
    for (const char* name : {"/job", "/rank-00000"}) EXPECT_EQ(mode_of(pool + name), 0600U) << name;
  }
}

TEST(ProcessOfAProgram, whose_path_has_a_slip_makes_no_directory_for_it) {
  const TemporaryDirectory directory;
  perdure_pool* pool = nullptr;
  EXPECT_EQ(perdure_open((directory / "pmen/run").c_str(), nullptr, &pool), PERDURE_E_IO);
  EXPECT_TRUE(said("mkdir -p " + (directory / "pmen")));
  EXPECT_FALSE(std::filesystem::exists(directory / "pmen"));
}

// A pool in use that is moved, with another one in its place or not.
class MovedPool : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(job_.start(pool_), 0) << perdure_last_error(); }
  void expect_noticed(const std::string& word) {
    ::usleep(2000);  // the path is looked at once in a millisecond
    EXPECT_EQ(job_.commit(), PERDURE_E_IO);
    EXPECT_TRUE(said(word));
  }

  const TemporaryDirectory directory_;
  const std::string pool_ = directory_ / "pool";
  const std::string moved_ = directory_ / "moved";
  Job job_;
};

TEST_F(MovedPool, is_noticed_by_the_next_commit_which_goes_on_when_it_is_back) {
  ASSERT_EQ(job_.commit(), 0);
  std::filesystem::rename(pool_, moved_);
  expect_noticed("is not there any more");
  std::filesystem::rename(moved_, pool_);
  EXPECT_EQ(job_.commit(), 0) << perdure_last_error();
  EXPECT_EQ(job_.close(), 0);
  Job again;
  ASSERT_EQ(again.start(pool_), 0) << perdure_last_error();
  EXPECT_EQ(again.version(), 2U);
  EXPECT_EQ(again.value(), 3);
}

TEST_F(MovedPool, of_which_an_older_copy_is_in_the_place_is_noticed_by_the_next_commit) {
  ASSERT_EQ(job_.commit(), 0);
  std::filesystem::copy(pool_, directory_ / "backup");
  ASSERT_EQ(job_.commit(), 0);
  std::filesystem::rename(pool_, moved_);
  std::filesystem::rename(directory_ / "backup", pool_);
  expect_noticed("is another file than the one that is open");
}

TEST_F(MovedPool, of_which_the_rank_file_alone_was_exchanged_is_noticed_by_the_next_commit) {
  ASSERT_EQ(job_.commit(), 0);
  std::filesystem::copy(pool_ + "/rank-00000", directory_ / "backup");
  std::filesystem::rename(pool_ + "/rank-00000", directory_ / "kept");
  std::filesystem::rename(directory_ / "backup", pool_ + "/rank-00000");
  expect_noticed("is another file than the one that is open");
}

TEST_F(MovedPool, is_found_by_a_program_that_changed_its_directory_and_a_link_to_it) {
  ASSERT_EQ(job_.close(), 0);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_symlink(pool_, directory_ / "latest");
  std::filesystem::current_path(directory_.path());
  Job relative;
  ASSERT_EQ(relative.start("latest"), 0) << perdure_last_error();
  std::filesystem::current_path(before);
  std::filesystem::remove(directory_ / "latest");
  EXPECT_EQ(relative.commit(), 0) << perdure_last_error();
}

}  // namespace
