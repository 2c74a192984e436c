// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: what another user of the node does, in a process of its own.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "temporary_directory.hpp"

namespace perdure::energy::fake {

constexpr uid_t stranger = 65533;
constexpr gid_t members = 64533;

inline bool may_be_another() {
  return ::geteuid() == 0;
}

// True if `act` was. Needs may_be_another().
inline bool as_another(gid_t group, const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 &&
                         ::setresuid(stranger, stranger, stranger) == 0;
    ::_exit(changed && act() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

inline void make_socket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
}

// A folder of its own. Whatever waits for ever in it is ended after a minute, and fails.
class HostileTest : public testing::Test {
 protected:
  HostileTest() {
    ::chmod(root_.c_str(), 0755);
    ::alarm(60);
  }
  ~HostileTest() override { ::alarm(0); }
  std::string at(const std::string& name) const { return directory_ / name; }

  perdure_test::TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
};

}  // namespace perdure::energy::fake
