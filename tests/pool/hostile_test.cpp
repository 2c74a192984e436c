// SPDX-License-Identifier: BSD-3-Clause
//
// Hostile neighbours and ordinary mistakes around pools: what another user planted, files that
// vanish, forked children, threads that meet, pools in the wrong place. docs/security.md has the
// table. Where a second user is needed the test runs as root, and is skipped otherwise.
// ctest: DEPS pool LIBS perdure_shared IN pool_outside LABELS hostile
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "perdure/perdure.h"
#include "pool/inspect.hpp"
#include "temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;
using perdure_test::read_file;
using perdure_test::TemporaryDirectory;
using perdure_test::write_file;

constexpr uid_t victim = 65532;
constexpr uid_t attacker = 65533;
constexpr std::uint64_t cells = 1000;

mode_t mode_of(const std::string& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777U;
}

struct Trial {
  int code = 0;
  std::string message;
  std::uint64_t version = 0;
  double value = 0;
};

// A whole run of a job: opens, restarts, commits `steps` more.
Trial run(const std::string& path, int steps, unsigned flags = 0) {
  Trial result;
  perdure_options options{};
  options.flags = flags;
  options.job = "victim's job";
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  const auto failed = [&](int code) {
    if (code == 0) return false;
    result.code = code;
    result.message = perdure_last_error();
    return true;
  };
  if (failed(perdure_open(path.c_str(), &options, &pool))) return result;
  if (!failed(
          perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, nullptr, &u)) &&
      !failed(perdure_restart(pool, &result.version))) {
    auto* value = static_cast<double*>(perdure_working(u));
    for (int step = 0; step < steps; ++step) {
      value[0] += 1;
      if (failed(perdure_commit(pool, &result.version))) break;
    }
    result.value = value[0];
  }
  perdure_close(pool);
  return result;
}

// Whether `act`, done by another user in a process of its own, returned true.
bool as_user(uid_t uid, const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool changed = ::setresgid(uid, uid, uid) == 0 && ::setresuid(uid, uid, uid) == 0;
    ::umask(0);
    ::_exit(changed && act() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Two users and a directory in which both may make files, as in /dev/shm.
class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to act as two other users";
    ASSERT_EQ(::chmod((directory_ / "").c_str(), 01777), 0);
  }
  std::string at(const std::string& name) const { return directory_ / name; }

  // The victim runs its job in `pool`, which must be refused as another user's.
  void expect_refused(const std::string& pool) {
    EXPECT_TRUE(as_user(victim, [&] {
      const Trial attempt = run(pool, 1);
      if (attempt.code != PERDURE_E_FOREIGN) {
        std::fprintf(stderr, "code %d: %s\n", attempt.code, attempt.message.c_str());
      }
      return attempt.code == PERDURE_E_FOREIGN && attempt.message.find(pool) != std::string::npos;
    }));
  }

  TemporaryDirectory directory_;
};

TEST_F(Hostile, a_link_planted_as_the_job_record_overwrites_nothing) {
  write_file(at("precious"), "results of a month");
  ASSERT_EQ(::chown(at("precious").c_str(), victim, victim), 0);
  for (const char* name : {"rank-00000.job", "job.new-00000", "job", "rank-00000"}) {
    const std::string pool = at(std::string("pool-") + name);
    ASSERT_TRUE(as_user(attacker, [&] {
      return ::mkdir(pool.c_str(), 0777) == 0 &&
             ::symlink(at("precious").c_str(), (pool + "/" + name).c_str()) == 0;
    }));
    expect_refused(pool);
    // Even if the directory's owner is meant, links in it are not followed.
    (void)as_user(victim, [&] { return run(pool, 1, PERDURE_ANY_OWNER).code == 0; });
    EXPECT_EQ(read_file(at("precious")), "results of a month") << name;
  }
}

TEST_F(Hostile, links_planted_in_a_sticky_directory_overwrite_nothing) {
  write_file(at("precious"), "results of a month");
  ASSERT_EQ(::chown(at("precious").c_str(), victim, victim), 0);
  fs::create_directory(at("pool"));
  ASSERT_EQ(::chmod(at("pool").c_str(), 01777), 0);
  for (const char* name : {"job.new-00000", "job", "rank-00000"}) {
    const std::string link = at("pool/") + name;
    ASSERT_TRUE(
        as_user(attacker, [&] { return ::symlink(at("precious").c_str(), link.c_str()) == 0; }));
    (void)as_user(victim, [&] { return run(at("pool"), 1).code == 0; });
    EXPECT_EQ(read_file(at("precious")), "results of a month") << name;
    fs::remove(link);
  }
}

TEST_F(Hostile, a_planted_pool_is_not_believed_unless_it_is_meant) {
  const std::string pool = at("pool");
  ASSERT_TRUE(as_user(attacker, [&] {
    if (run(pool, 77).code != 0) return false;
    return ::chmod(pool.c_str(), 0777) == 0 && ::chmod((pool + "/job").c_str(), 0666) == 0 &&
           ::chmod((pool + "/rank-00000").c_str(), 0666) == 0;
  }));
  expect_refused(pool);
  EXPECT_TRUE(as_user(victim, [&] { return run(pool, 0, PERDURE_ANY_OWNER).version == 77; }));
  EXPECT_TRUE(as_user(victim, [&] {
    ::setenv("PERDURE_ANY_OWNER", "1", 1);
    return run(pool, 0).version == 77;
  }));
  // In a directory of the victim's own, which the attacker moved the files to.
  fs::create_directory(at("own"));
  fs::rename(pool + "/job", at("own/job"));
  fs::rename(pool + "/rank-00000", at("own/rank-00000"));
  ASSERT_EQ(::chown(at("own").c_str(), victim, victim), 0);
  ASSERT_EQ(::chmod(at("own").c_str(), 0700), 0);
  expect_refused(at("own"));
}

TEST_F(Hostile, a_pools_files_are_for_their_user_only) {
  const std::string pool = at("a/pool");
  ASSERT_EQ(::mkdir(at("a").c_str(), 0755), 0);
  ASSERT_EQ(::chown(at("a").c_str(), victim, victim), 0);
  ASSERT_TRUE(as_user(victim, [&] { return run(pool, 2).code == 0; }));
  EXPECT_EQ(mode_of(pool), 0700U);
  EXPECT_EQ(mode_of(pool + "/job"), 0600U);
  EXPECT_EQ(mode_of(pool + "/rank-00000"), 0600U);
  EXPECT_EQ(mode_of(at("a")), 0755U);
}

TEST_F(Hostile, the_command_says_whose_a_pool_is) {
  ASSERT_TRUE(as_user(attacker, [&] { return run(at("pool"), 1).code == 0; }));
  const auto report = perdure::inspect_pool(at("pool"), {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().owner, attacker);
  EXPECT_EQ(perdure::user_text(report.value().owner), "user 65533");
  const auto removed = as_user(victim, [&] { return perdure::remove_pool(at("pool")).ok(); });
  EXPECT_FALSE(removed);
  EXPECT_TRUE(fs::exists(at("pool/job")));
}

class Pools : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return directory_ / name; }
  TemporaryDirectory directory_;
};

TEST_F(Pools, the_mode_of_a_directory_that_was_there_stays) {
  fs::create_directory(at("shared"));
  for (const mode_t mode : {02750U, 01777U, 0755U}) {
    ASSERT_EQ(::chmod(at("shared").c_str(), mode), 0);
    const Trial result = run(at("shared"), 1);
    EXPECT_EQ(result.code, 0) << result.message;
    EXPECT_EQ(mode_of(at("shared")), mode);
  }
  ASSERT_EQ(::chmod(at("shared").c_str(), 0777), 0);
  const Trial refused = run(at("shared"), 1);
  EXPECT_EQ(refused.code, PERDURE_E_FOREIGN);
  EXPECT_NE(refused.message.find("PERDURE_ANY_OWNER"), std::string::npos) << refused.message;
  EXPECT_EQ(run(at("shared"), 1, PERDURE_ANY_OWNER).code, 0);
  EXPECT_EQ(mode_of(at("shared")), 0777U);
}

// A FIFO that nobody writes to used to be waited for without end; ctest's timeout would end this.
TEST_F(Pools, whatever_is_no_file_is_an_error_at_once) {
  for (const char* name : {"job", "rank-00000"}) {
    ASSERT_EQ(run(at("pool"), 1).code, 0);
    const std::string path = at("pool/") + name;
    const std::string kept = read_file(path);
    for (const char* kind : {"fifo", "directory", "device"}) {
      fs::remove_all(path);
      if (std::string(kind) == "fifo") {
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      } else if (std::string(kind) == "directory") {
        ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
      } else if (::mknod(path.c_str(), S_IFCHR | 0600, 0x103) != 0) {
        continue;  // not root
      }
      const Trial refused = run(at("pool"), 1);
      EXPECT_EQ(refused.code, PERDURE_E_FOREIGN) << kind;
      EXPECT_NE(refused.message.find(path), std::string::npos) << refused.message;
    }
    fs::remove_all(path);
    write_file(path, kept);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  }
}

TEST_F(Pools, the_applications_buffer_keeps_its_contents_when_a_new_pool_restarts) {
  for (const int mode : {PERDURE_COPY, PERDURE_LOG}) {
    std::vector<double> buffer(cells, 4000.0);
    perdure_pool* pool = nullptr;
    perdure_array* u = nullptr;
    const perdure_array_options options{mode == PERDURE_LOG ? unsigned{PERDURE_COMPARE} : 0U,
                                        buffer.data(), 0, nullptr};
    const std::string path = at("pool" + std::to_string(mode));
    const auto open = [&] {
      std::uint64_t version = 99;
      EXPECT_EQ(perdure_open(path.c_str(), nullptr, &pool), 0);
      EXPECT_EQ(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, mode, &options, &u), 0);
      EXPECT_EQ(perdure_restart(pool, &version), 0);
      return version;
    };
    EXPECT_EQ(open(), 0U);
    EXPECT_EQ(buffer, std::vector<double>(cells, 4000.0));
    EXPECT_EQ(perdure_commit(pool, nullptr), 0);
    perdure_close(pool);
    buffer.assign(cells, -1.0);
    EXPECT_EQ(open(), 1U);
    EXPECT_EQ(buffer, std::vector<double>(cells, 4000.0));
    perdure_close(pool);
  }
}

class OpenPool : public Pools {
 protected:
  void SetUp() override {
    ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0) << perdure_last_error();
    ASSERT_EQ(perdure_array_open(pool_, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, nullptr, &u_),
              0);
    ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
    ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  }
  void TearDown() override { perdure_close(pool_); }

  perdure_pool* pool_ = nullptr;
  perdure_array* u_ = nullptr;
};

TEST_F(OpenPool, a_commit_fails_when_its_files_have_vanished) {
  for (const char* name : {"rank-00000", "job"}) {
    SCOPED_TRACE(name);
    std::uint64_t version = 99;
    fs::rename(at("pool/") + name, at("elsewhere"));
    ::usleep(2000);                                 // the path is looked at once in a millisecond
    const bool found = std::string(name) == "job";  // a restart looks for the other by its path
    EXPECT_EQ(perdure_commit(pool_, nullptr), found ? 0 : PERDURE_E_IO);
    fs::rename(at("elsewhere"), at("pool/") + name);
    const std::string copy = at(std::string("copy-") + name);
    fs::copy_file(at("pool/") + name, copy);
    fs::remove(at("pool/") + name);
    EXPECT_EQ(perdure_commit(pool_, &version), PERDURE_E_IO);
    EXPECT_EQ(version, 99U);
    EXPECT_NE(std::string(perdure_last_error()).find(name), std::string::npos);
    EXPECT_NE(std::string(perdure_last_error()).find("removed"), std::string::npos);
    EXPECT_EQ(perdure_commit_begin(pool_), 0);
    EXPECT_EQ(perdure_commit_wait(pool_, &version), PERDURE_E_IO);
    perdure_close(pool_);
    fs::rename(copy, at("pool/") + name);
    ASSERT_EQ(::chmod((at("pool/") + name).c_str(), 0600), 0);
    SetUp();
  }
}

TEST_F(Pools, a_run_page_that_vanished_is_said_once_and_the_job_goes_on) {
  fs::create_directory(at("pages"));
  ::setenv("PERDURE_RUN_DIR", at("pages").c_str(), 1);
  perdure_pool* pool = nullptr;
  ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool), 0);
  ASSERT_EQ(perdure_restart(pool, nullptr), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(perdure_commit(pool, nullptr), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(fs::remove(at("pages/page-00000")));
  testing::internal::CaptureStderr();
  EXPECT_EQ(perdure_commit(pool, nullptr), 0);
  EXPECT_EQ(perdure_commit(pool, nullptr), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("run page was removed"), std::string::npos) << said;
  EXPECT_EQ(said.find("run page"), said.rfind("run page")) << said;
  perdure_close(pool);
  ::unsetenv("PERDURE_RUN_DIR");
}

// A run directory that is not the launcher's: of another pool, or with other files in it.
TEST_F(Pools, a_run_page_takes_the_place_of_no_other_file) {
  ASSERT_EQ(run(at("other"), 3).version, 3U);
  write_file(at("other/page-00000"), "results of a month");
  ::setenv("PERDURE_RUN_DIR", at("other").c_str(), 1);
  ::setenv("PERDURE_RUN_SHARED", at("other").c_str(), 1);
  testing::internal::CaptureStderr();
  const Trial job = run(at("pool"), 2);
  const std::string said = testing::internal::GetCapturedStderr();
  ::unsetenv("PERDURE_RUN_DIR");
  ::unsetenv("PERDURE_RUN_SHARED");
  EXPECT_EQ(job.version, 2U) << job.message;
  EXPECT_NE(said.find("page-00000 is no run page"), std::string::npos) << said;
  EXPECT_EQ(read_file(at("other/page-00000")), "results of a month");
  EXPECT_EQ(run(at("other"), 0).version, 3U);
}

// Another process cuts the file and puts it back, all the time.
TEST_F(Pools, a_file_that_is_cut_while_the_command_reads_it_ends_no_process) {
  const std::string pool = at("pool");
  constexpr std::uint64_t many = std::uint64_t{1} << 19U;
  {
    perdure_pool* opened = nullptr;
    perdure_array* u = nullptr;
    ASSERT_EQ(perdure_open(pool.c_str(), nullptr, &opened), 0);
    ASSERT_EQ(perdure_array_open(opened, "u", PERDURE_DOUBLE, 1, &many, PERDURE_COPY, nullptr, &u),
              0);
    ASSERT_EQ(perdure_restart(opened, nullptr), 0);
    std::fill_n(static_cast<double*>(perdure_working(u)), many, 7.0);
    ASSERT_EQ(perdure_commit(opened, nullptr), 0);
    ASSERT_EQ(perdure_close(opened), 0);
  }
  const std::string file = pool + "/rank-00000";
  const std::string whole = read_file(file);
  const pid_t cutter = ::fork();
  if (cutter == 0) {
    const perdure::FileHandle handle(::open(file.c_str(), O_RDWR));
    for (std::uint64_t cut = whole.size() / 2;; cut = (cut * 5 + 12345) % whole.size()) {
      (void)!::ftruncate(handle.fd(), static_cast<off_t>(cut));
      (void)!::pwrite(handle.fd(), whole.data() + cut, whole.size() - cut, static_cast<off_t>(cut));
    }
  }
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    const auto report = perdure::inspect_pool(pool, {.verify_data = true});
    EXPECT_TRUE(report.ok()) << report.status().message();
    const auto dumped = perdure::dump_array(pool, 0, "u");
    refused += dumped.ok() ? 0 : 1;
    if (!dumped.ok()) continue;
    const auto* values = reinterpret_cast<const double*>(dumped.value().bytes.data());
    EXPECT_EQ(std::count(values, values + many, 7.0), static_cast<std::ptrdiff_t>(many));
  }
  ::kill(cutter, SIGKILL);
  ::waitpid(cutter, nullptr, 0);
  EXPECT_GT(refused, 0) << "no round met a file that was cut";
}

TEST_F(OpenPool, a_forked_child_is_refused_and_the_parent_goes_on) {
  auto* value = static_cast<double*>(perdure_working(u_));
  value[0] = 42;
  ASSERT_EQ(perdure_commit_begin(pool_), 0);  // a thread that the child does not have
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t version = 0;
    int wrong = 0;
    perdure_pool_status status;
    wrong += perdure_commit(pool_, &version) != PERDURE_E_STATE;
    wrong += perdure_commit_wait(pool_, &version) != PERDURE_E_STATE;
    wrong += perdure_commit_begin(pool_) != PERDURE_E_STATE;
    wrong += perdure_before_write(u_) != PERDURE_E_STATE;
    wrong += perdure_restore(pool_, 1) != PERDURE_E_STATE;
    wrong += perdure_status(pool_, &status) != PERDURE_E_STATE;
    wrong += perdure_close(pool_) != PERDURE_E_STATE;
    wrong += std::string(perdure_last_error()).find("forked") == std::string::npos;
    const Trial own = run(at("child's"), 3);
    wrong += own.code != 0 || own.version != 3;
    ::exit(wrong);  // with all that runs at the end of a process
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "so many calls of the child were not refused";
  std::uint64_t version = 0;
  EXPECT_EQ(perdure_commit_wait(pool_, &version), 0);
  EXPECT_EQ(version, 2U);
  EXPECT_EQ(perdure_commit(pool_, &version), 0);
  EXPECT_EQ(version, 3U);
}

TEST_F(OpenPool, threads_that_meet_in_a_pool_get_an_error_and_no_mixture) {
  constexpr int threads = 4;
  constexpr int calls = 300;
  std::atomic<int> committed = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> others = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int call = 0; call < calls; ++call) {
        const int code = perdure_commit(pool_, nullptr);
        ++(code == 0 ? committed : code == PERDURE_E_STATE ? refused : others);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(committed + refused, threads * calls);
  perdure_pool_status status{};
  ASSERT_EQ(perdure_status(pool_, &status), 0);
  EXPECT_EQ(status.version, 1U + static_cast<unsigned>(committed));
  perdure_close(pool_);
  SetUp();  // opens what the threads have left, and commits
}

TEST_F(Pools, a_pool_put_in_the_place_of_another_is_not_believed) {
  ASSERT_EQ(run(at("mine"), 5).code, 0);
  ASSERT_EQ(run(at("other"), 3).code, 0);
  for (const char* name : {"job", "rank-00000"}) {
    fs::rename(at("mine/") + name, at(std::string("kept-") + name));
    fs::copy_file(at("other/") + name, at("mine/") + name);
    ASSERT_EQ(::chmod((at("mine/") + name).c_str(), 0600), 0);
  }
  const Trial refused = run(at("mine"), 1);
  EXPECT_EQ(refused.code, PERDURE_E_FOREIGN);
  EXPECT_NE(refused.message.find("perdure pool adopt"), std::string::npos) << refused.message;
  EXPECT_EQ(run(at("mine"), 0, PERDURE_ANY_JOB).version, 3U);
  for (const char* name : {"job", "rank-00000"}) {
    fs::rename(at(std::string("kept-") + name), at("mine/") + name);
  }
  EXPECT_EQ(run(at("mine"), 0).version, 5U) << "its own files, brought back";
  fs::rename(at("mine"), at("moved"));
  EXPECT_EQ(run(at("moved"), 0).version, 5U) << "the same directory under another name";
  fs::copy(at("moved"), at("copy"), fs::copy_options::recursive);
  EXPECT_EQ(run(at("copy"), 0).code, PERDURE_E_FOREIGN);
  ASSERT_TRUE(perdure::inspect_pool(at("copy"), {}).value().moved);
  ASSERT_TRUE(perdure::adopt_pool(at("copy")).ok());
  EXPECT_FALSE(perdure::inspect_pool(at("copy"), {}).value().moved);
  EXPECT_EQ(run(at("copy"), 0).version, 5U);
}

TEST_F(Pools, removal_takes_what_is_the_pools_and_can_be_repeated) {
  ASSERT_EQ(run(at("pool"), 1).code, 0);
  write_file(at("pool/rank-results.csv"), "a user's");
  write_file(at("pool/rank-00007"), "of no rank of this pool");
  write_file(at("pool/job.new-00003"), "of a rank that was killed");
  fs::create_directory(at("pool/rank-data"));
  ASSERT_TRUE(perdure::remove_pool(at("pool")).ok());
  for (const char* name : {"job", "rank-00000", "job.new-00003"}) {
    EXPECT_FALSE(fs::exists(at("pool/") + name)) << name;
  }
  for (const char* name : {"rank-results.csv", "rank-00007", "rank-data"}) {
    EXPECT_TRUE(fs::exists(at("pool/") + name)) << name;
  }
  EXPECT_EQ(perdure::remove_pool(at("pool")).code(), perdure::Code::not_found);
  // One that can't be removed as a whole stays as a whole.
  ASSERT_EQ(run(at("half"), 1).code, 0);
  fs::rename(at("half/rank-00000"), at("aside"));
  fs::create_directory(at("half/rank-00000"));
  EXPECT_FALSE(perdure::remove_pool(at("half")).ok());
  EXPECT_TRUE(fs::exists(at("half/job")));
  fs::remove(at("half/rank-00000"));
  EXPECT_TRUE(perdure::remove_pool(at("half")).ok()) << "half of it was gone already";
  EXPECT_FALSE(fs::exists(at("half")));
}

TEST_F(Pools, damaged_data_is_named_with_rank_path_array_bytes_and_remedy) {
  ASSERT_EQ(run(at("pool"), 2).code, 0);
  std::string bytes = read_file(at("pool/rank-00000"));
  // The array's copies hold 2.0 or 1.0 and zeros: the newest one is found by its first element.
  const double newest = 2.0;
  const std::size_t found = bytes.find(
      std::string(reinterpret_cast<const char*>(&newest), sizeof newest) + std::string(64, '\0'));
  ASSERT_NE(found, std::string::npos);
  bytes[found + 16] = 1;
  write_file(at("pool/rank-00000"), bytes);
  const Trial damaged = run(at("pool"), 0);
  EXPECT_EQ(damaged.code, PERDURE_E_DAMAGED);
  for (const char* part :
       {"rank 0", "rank-00000", "array 'u'", "bytes 0 to 7999", "perdure pool versions"}) {
    EXPECT_NE(damaged.message.find(part), std::string::npos) << part << ": " << damaged.message;
  }
}

}  // namespace
