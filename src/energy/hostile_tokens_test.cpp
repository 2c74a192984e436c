// SPDX-License-Identifier: BSD-3-Clause
//
// Writer tokens, reports and files to measure with, where another user got there first: the job
// goes on at once, and nothing of anybody's is overwritten.
// ctest: NAME energy_hostile_test
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "energy/io_worker.hpp"
#include "energy/session.hpp"
#include "energy/settings.hpp"
#include "energy/testing/fake_tree.hpp"
#include "energy/testing/hostile.hpp"
#include "energy/tokens.hpp"

namespace perdure::energy {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t patient_ms = 60'000;

class HostileTokens : public fake::HostileTest {
 protected:
  void SetUp() override {
    ::unsetenv("PERDURE_ANY_OWNER");
    std::ofstream(at("precious")) << "results";
  }
  std::string precious() const {
    std::ostringstream text;
    text << std::ifstream(at("precious")).rdbuf();
    return text.str();
  }
  // Why the token was gone without.
  static std::string refused(const std::string& path, bool shared) {
    WriterTokens tokens(path, shared);
    EXPECT_FALSE(tokens.acquire(1, patient_ms));
    tokens.release();
    EXPECT_EQ(tokens.counters().went_ahead, 1U);
    return tokens.counters().reason;
  }
  void give_to_group() const {
    ASSERT_EQ(::mkdir(at("tokens").c_str(), 0700), 0);
    ASSERT_EQ(::chown(at("tokens").c_str(), ::geteuid(), fake::members), 0);
    ASSERT_EQ(::chmod(at("tokens").c_str(), 02770), 0);
  }
};

TEST_F(HostileTokens, that_are_no_regular_file_are_gone_without_at_once) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0666), 0);
  fake::make_socket(at("socket"));
  fs::create_symlink(at("precious"), at("link"));
  fs::create_symlink(at("nothing"), at("dangling"));
  fs::create_hard_link(at("precious"), at("second"));
  for (const char* name : {"fifo", "socket", "link", "dangling", "second"}) {
    for (const bool shared : {false, true}) {
      EXPECT_NE(refused(at(name), shared).find(at(name)), std::string::npos) << name;
    }
  }
  EXPECT_EQ(precious(), "results");
  EXPECT_FALSE(fs::exists(at("nothing")));
}

TEST_F(HostileTokens, of_another_user_are_gone_without_and_stay) {
  if (!fake::may_be_another()) GTEST_SKIP() << "needs root, to act as a second user";
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  const std::string own = "/dev/shm/perdure-tokens-0-hostile-" + std::to_string(::getpid());
  ASSERT_TRUE(fake::as_another(fake::stranger, [&] {
    ::umask(0);
    return (std::ofstream(at("planted")) << "x").good() && ::mkfifo(own.c_str(), 0666) == 0;
  }));
  EXPECT_NE(refused(at("planted"), false).find("belongs to user 65533"), std::string::npos);
  remove_unused_tokens();
  EXPECT_TRUE(fs::exists(own));
  fs::remove(own);
}

TEST_F(HostileTokens, whose_guard_is_kept_are_waited_for_until_the_timeout_only) {
  WriterTokens user(at("tokens"), false);
  ASSERT_TRUE(user.acquire(1, patient_ms));
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe(answer.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(at("tokens").c_str(), O_RDWR);
    struct flock guard{};
    guard.l_type = F_WRLCK;
    guard.l_len = 1;  // byte 0, as tokens.hpp says
    (void)!::write(answer[1], ::fcntl(fd, F_OFD_SETLK, &guard) == 0 ? "y" : "n", 1);
    ::pause();
  }
  char locked = 0;
  ASSERT_EQ(::read(answer[0], &locked, 1), 1);
  EXPECT_EQ(locked, 'y');
  WriterTokens other(at("tokens"), false);
  EXPECT_FALSE(other.acquire(4, 50));
  EXPECT_NE(other.counters().reason.find("keeps it locked"), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(other.acquire(4, patient_ms));
}

TEST_F(HostileTokens, of_a_group_survive_a_member_who_cuts_or_fills_their_file) {
  give_to_group();
  const std::string path = at("tokens/sda");
  WriterTokens holder(path, true);
  ASSERT_TRUE(holder.acquire(2, patient_ms));
  WriterTokens other(path, true);
  for (const std::string& text : {std::string(), std::string("x"), std::string(64, '\xff')}) {
    fs::resize_file(path, 0);  // a mapped page of it would be SIGBUS from now on
    std::ofstream(path, std::ios::in | std::ios::binary) << text;
    EXPECT_TRUE(other.acquire(2, patient_ms));
    other.release();
  }
  EXPECT_FALSE(other.acquire(1, 30));  // the holder's counts all the same
  holder.release();
  EXPECT_TRUE(other.acquire(1, patient_ms));
}

TEST_F(HostileTokens, of_a_group_are_shared_by_its_members_whatever_their_umask_is) {
  if (!fake::may_be_another()) GTEST_SKIP() << "needs root, to act as members of a group";
  give_to_group();
  const mode_t before = ::umask(077);
  WriterTokens holder(at("tokens/sda"), true);
  ASSERT_TRUE(holder.acquire(1, patient_ms));
  ::umask(before);
  const auto take = [&] {
    WriterTokens tokens(at("tokens/sda"), true);
    const bool refused_now = !tokens.acquire(1, 30);
    const bool two = tokens.acquire(2, patient_ms);
    tokens.release();
    return refused_now && two;
  };
  EXPECT_TRUE(fake::as_another(fake::members, take));
  EXPECT_FALSE(fake::as_another(fake::stranger, take));
}

TEST_F(HostileTokens, and_reports_are_not_written_through_links_nor_wait_for_a_reader) {
  fake::FakeSysfs sysfs(root_);
  ASSERT_TRUE(fake::make_machine(sysfs.tree(), "intel_pstate"));
  Storage storage;
  storage.name = "sda";
  const EnergySession session(sysfs, storage, SessionRequest{});
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0666), 0);
  fs::create_symlink(at("precious"), at("link"));
  for (const char* name : {"fifo", "link"}) {
    ::setenv("PERDURE_ENERGY_REPORT", at(name).c_str(), 1);
    EXPECT_EQ(report_session(session, "pool", 0).code(), Code::foreign) << name;
  }
  ::setenv("PERDURE_ENERGY_REPORT", at("report").c_str(), 1);
  EXPECT_TRUE(report_session(session, "pool", 0).ok());
  EXPECT_TRUE(report_session(session, "pool", 1).ok());
  ::unsetenv("PERDURE_ENERGY_REPORT");
  std::ifstream report(at("report"));
  int lines = 0;
  for (std::string line; std::getline(report, line);) lines += line.front() == '{' ? 1 : 0;
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(precious(), "results");
  for (const char* name : {"fifo", "/dev/zero"}) {
    EXPECT_FALSE(read_profile(name[0] == '/' ? name : at(name)).ok());
    EXPECT_FALSE(read_plan(name[0] == '/' ? name : at(name)).ok());
  }
}

TEST_F(HostileTokens, and_files_to_measure_with_are_new_ones) {
  fs::create_symlink(at("precious"), at("write-0"));
  ASSERT_EQ(::mkfifo(at("read").c_str(), 0666), 0);
  IoRequest request;
  request.path = at("write-0");
  request.bytes = 4096;
  EXPECT_FALSE(IoWorker::prepare(request).ok());
  request.path = at("precious");
  EXPECT_FALSE(IoWorker::prepare(request).ok());
  request.kind = IoKind::read;
  request.path = at("read");
  EXPECT_FALSE(IoWorker::prepare(request).ok());
  request.kind = IoKind::write;
  request.path = at("write-1");
  auto worker = IoWorker::prepare(request);
  ASSERT_TRUE(worker.ok()) << worker.status().message();
  EXPECT_TRUE(worker.value()->run().ok());
  EXPECT_EQ(precious(), "results");
}

}  // namespace
}  // namespace perdure::energy
