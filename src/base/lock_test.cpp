// SPDX-License-Identifier: BSD-3-Clause
//
// Locks: who else holds one, on what file system, and what a forked child gets of them.
// ctest: LABELS truth ALONE
#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "temporary_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

namespace {

int refused_with = 0;  // errno of every flock(); 0: it is the kernel's

}  // namespace

// Stands for a file system without locks, which is not to be had here.
extern "C" int flock(int fd, int operation) {
  if (refused_with == 0) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = refused_with;
  return -1;
}

namespace {

using namespace perdure;

class Locks : public testing::Test {
 protected:
  FileHandle open() const { return open_file(path_, FileAccess::read_write).take(); }
  // Whether nobody holds the lock.
  bool is_free() const {
    const FileHandle file = open();
    return try_lock_file(file.fd(), FileLock::alone, path_).value();
  }

  perdure_test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "file";
  const FileHandle made_ = create_file(path_).take();
};

// A process that does `act`, says when it has, and then waits to be killed.
class Held {
 public:
  explicit Held(const std::function<void()>& act) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      act();
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char said = 0;
    EXPECT_EQ(::read(ends[0], &said, 1), 1);
    ::close(ends[0]);
  }
  ~Held() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST_F(Locks, a_file_system_without_locks_is_said_with_what_can_be_done) {
  const FileHandle file = open();
  for (const int refused : {ENOLCK, EOPNOTSUPP, ENOSYS, 524}) {
    refused_with = refused;
    const Status status = lock_file(file.fd(), path_, {});
    refused_with = 0;
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.message().find("has no locks"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("-o flock"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(lock_file(file.fd(), path_, {}).ok());
}

// The test's own time limit is what ends a wait.
TEST_F(Locks, a_holder_that_is_stopped_is_named_and_not_waited_for_as_if_it_worked) {
  const Held holder([&] {
    static FileHandle file = open();
    if (!lock_file(file.fd(), path_, {}).ok()) ::_exit(1);
  });
  holder.stop();
  const FileHandle file = open();
  const Status status = lock_file(file.fd(), path_, {.wait_ms = 20, .working_ms = 3'600'000});
  EXPECT_EQ(status.code(), Code::busy);
  const std::string named = "process " + std::to_string(holder.pid()) + ", which is stopped";
  EXPECT_NE(status.message().find(named), std::string::npos) << status.message();
}

TEST_F(Locks, a_lock_of_this_process_is_not_waited_for_where_it_can_only_be_its_own) {
  const FileHandle file = open();
  ASSERT_TRUE(lock_file(file.fd(), path_, {}).ok());
  const FileHandle second = open();
  const Status status = lock_file(second.fd(), path_, {.wait_ms = 3'600'000, .own_at_once = true});
  EXPECT_EQ(status.code(), Code::busy);
  EXPECT_NE(status.message().find("in this process already"), std::string::npos)
      << status.message();
}

TEST_F(Locks, a_forked_child_that_outlives_its_parent_keeps_no_lock) {
  FileHandle file = open();
  ASSERT_TRUE(lock_file(file.fd(), path_, {}).ok());
  const Held child([] {});
  EXPECT_FALSE(is_free());  // it is the parent's still
  file = FileHandle();      // as when it ends
  EXPECT_TRUE(is_free());
}

TEST_F(Locks, a_forked_child_that_closes_what_it_inherited_closes_nothing_of_its_own) {
  FileHandle file = open();
  ASSERT_TRUE(lock_file(file.fd(), path_, {}).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const FileHandle own = open();
    const bool apart = own.fd() != file.fd();
    file = FileHandle();
    ::_exit(apart && ::fcntl(own.fd(), F_GETFD) >= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(is_free());
}

}  // namespace
