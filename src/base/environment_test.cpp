// SPDX-License-Identifier: BSD-3-Clause
// ctest: NAME base_test
#include "base/environment.hpp"
#include "temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

using perdure::environment;
using perdure::variable_like;

constexpr const char* own_name = "PERDURE_RUN_DIR";

TEST(Environment, a_variable_that_is_not_set_is_empty) {
  ::unsetenv(own_name);
  EXPECT_EQ(environment(own_name), "");
  ::setenv(own_name, "place", 1);
  EXPECT_EQ(environment(own_name), "place");
  ::unsetenv(own_name);
}

TEST(Environment, the_known_names_are_sorted_and_each_is_nearest_to_itself) {
  const auto names = perdure::known_variables();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const auto name : names) EXPECT_EQ(variable_like(name), name);
}

TEST(Environment, a_slip_of_the_keys_finds_the_name_that_was_meant) {
  EXPECT_EQ(variable_like("PERDURE_EMULAT"), "PERDURE_EMULATE");
  EXPECT_EQ(variable_like("PERDURE_LOCK_WAIT"), "PERDURE_LOCK_WAIT_MS");
  EXPECT_EQ(variable_like("PERDURE_LEVLES"), "PERDURE_LEVELS");
  EXPECT_EQ(variable_like("PERDURE_MY_OWN_THING"), "");
  EXPECT_EQ(variable_like("PERDURE_Q"), "");
  EXPECT_EQ(variable_like(""), "");
}

// What say_unknown_variables() prints in a process with these variables.
std::string said(const std::string& variables) {
  testing::internal::CaptureStderr();
  const pid_t child = ::fork();
  if (child == 0) {
    ::clearenv();
    for (std::size_t begin = 0; begin < variables.size();) {
      const std::size_t end = std::min(variables.find(' ', begin), variables.size());
      ::putenv(::strdup(variables.substr(begin, end - begin).c_str()));
      begin = end + 1;
    }
    perdure::say_unknown_variables();
    perdure::say_unknown_variables();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return testing::internal::GetCapturedStderr();
}

TEST(Environment, a_variable_that_nobody_knows_is_said_once_and_only_on_rank_0) {
  EXPECT_EQ(said("PERDURE_EMULATE=x PERDURE_TEST_SEED=1 HOME=y"), "");
  EXPECT_EQ(said("PERDURE_EMULAT=x PMI_RANK=0"),
            "perdure: the variable PERDURE_EMULAT is set, and Perdure reads none of that name; did "
            "you mean PERDURE_EMULATE?\n");
  EXPECT_EQ(said("PERDURE_MY_OWN_THING=x"),
            "perdure: the variable PERDURE_MY_OWN_THING is set, and Perdure reads none of that "
            "name\n");
  EXPECT_EQ(said("PERDURE_EMULAT=x PMI_RANK=1 PMI_SIZE=2"), "");
}

// A copy of this program, which executes the test below with the variable set.
int status_of_copy(const std::string& program, uid_t caller) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(caller, caller, caller) != 0 || ::setresuid(caller, caller, caller) != 0) {
      ::_exit(99);
    }
    ::setenv(own_name, "/", 1);
    ::close(STDOUT_FILENO);  // what it expects in vain is not this test's
    ::execl(program.c_str(), program.c_str(), "--gtest_also_run_disabled_tests",
            "--gtest_filter=*DISABLED_nothing_is_read", nullptr);
    ::_exit(98);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Environment, DISABLED_nothing_is_read) {
  EXPECT_NE(std::getenv(own_name), nullptr);
  EXPECT_EQ(environment(own_name), "");
}

TEST(Environment, a_program_with_more_rights_than_its_caller_reads_no_variable) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a setuid program";
  const perdure_test::TemporaryDirectory directory(perdure_test::on_disk());
  struct statvfs place{};
  ASSERT_EQ(::statvfs(directory.path().c_str(), &place), 0);
  if ((place.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << directory.path() << " is mounted nosuid";
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const std::string program = directory / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  EXPECT_EQ(status_of_copy(program, 65533), 1);  // one with no more rights reads it
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(status_of_copy(program, 65533), 0);
}

}  // namespace
