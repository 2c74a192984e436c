// SPDX-License-Identifier: BSD-3-Clause
//
// Pools with a plan: when a version is due, and the drains to its upper levels.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;
using perdure_test::TemporaryDirectory;

constexpr std::uint64_t cells = 5000;

class PoolEnergy : public testing::Test {
 protected:
  ~PoolEnergy() override {
    for (const char* name : {"PERDURE_ENERGY_PLAN", "PERDURE_ENERGY_PROFILE",
                             "PERDURE_ENERGY_REPORT", "PERDURE_ENERGY_TOKENS"}) {
      ::unsetenv(name);
    }
  }
  std::string at(const std::string& name) const { return directory_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
    return at(name);
  }
  static std::string plan(const std::string& interval_s, const std::string& more = "") {
    return R"({"schema":1,"kind":"perdure-energy-plan","interval_s":)" + interval_s +
           R"(,"levels":[{"name":"local","every":1,"path":null,"write":{"freq_kHz":null,)" +
           R"("writers":1},"read":{"freq_kHz":null,"writers":1}})" + more + "]}";
  }
  std::string level(const std::string& name, int every) const {
    return R"(,{"name":")" + name + R"(","every":)" + std::to_string(every) + R"(,"path":")" +
           at(name) + R"(","write":{"freq_kHz":null,"writers":2},"read":null})";
  }
  void use_plan(const std::string& text) {
    ::setenv("PERDURE_ENERGY_PLAN", write("plan.json", text).c_str(), 1);
  }
  int open(const std::string& path) {
    const int code = perdure_open(path.c_str(), nullptr, &pool_);
    if (code != 0) return code;
    perdure_array_open(pool_, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, nullptr, &u_);
    return perdure_restart(pool_, &version_);
  }
  void store(double value) {
    auto* to = static_cast<double*>(perdure_working(u_));
    for (std::uint64_t i = 0; i < cells; ++i) to[i] = value;
  }
  double stored() const { return static_cast<const double*>(perdure_working(u_))[cells - 1]; }
  int due() {
    int due = -1;
    EXPECT_EQ(perdure_commit_due(pool_, &due), 0);
    return due;
  }

  TemporaryDirectory directory_;
  perdure_pool* pool_ = nullptr;
  perdure_array* u_ = nullptr;
  std::uint64_t version_ = 0;
};

TEST_F(PoolEnergy, a_version_is_due_always_without_a_plan) {
  ASSERT_EQ(open(at("pool")), 0);
  EXPECT_EQ(due(), 1);
  perdure_close(pool_);
}

TEST_F(PoolEnergy, a_request_to_end_is_answered_by_a_last_commit_and_acknowledged) {
  ::setenv("PERDURE_RUN_DIR", at("").c_str(), 1);
  ASSERT_EQ(open(at("pool")), 0);
  write("stop", "");
  EXPECT_EQ(due(), PERDURE_DUE_LAST);
  EXPECT_TRUE(fs::exists(at("stopping")));
  EXPECT_FALSE(fs::exists(at("stop")));
  EXPECT_EQ(due(), PERDURE_DUE_LAST);
  perdure_close(pool_);
  ASSERT_EQ(open(at("pool")), 0);  // of the next attempt, which has a directory of its own
  EXPECT_EQ(due(), PERDURE_DUE);
  perdure_close(pool_);
  ::unsetenv("PERDURE_RUN_DIR");
}

TEST_F(PoolEnergy, a_rank_of_another_node_leaves_its_page_where_all_nodes_see_it) {
  fs::create_directory(at("shared"));
  ::setenv("PERDURE_RUN_DIR", at("of_the_launchers_node").c_str(), 1);
  ::setenv("PERDURE_RUN_SHARED", at("shared").c_str(), 1);
  const auto phase = [&] {
    std::ifstream page(at("shared/page-00000"), std::ios::binary);
    std::uint32_t words[6] = {};
    page.read(reinterpret_cast<char*>(words), sizeof words);
    return words[5];  // RunPageFormat::phase
  };
  testing::internal::CaptureStderr();
  ASSERT_EQ(open(at("pool")), 0);
  EXPECT_EQ(phase(), 1U);  // RunPhase::restarting: rank 0's page, from which others are missed
  write("shared/stop", "");
  EXPECT_EQ(due(), PERDURE_DUE_LAST);
  EXPECT_TRUE(fs::exists(at("shared/stopping")));
  perdure_close(pool_);
  EXPECT_EQ(phase(), 4U);  // RunPhase::closed
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ::unsetenv("PERDURE_RUN_DIR");
  ::unsetenv("PERDURE_RUN_SHARED");
}

TEST_F(PoolEnergy, a_version_is_due_when_the_interval_has_passed) {
  use_plan(plan("3600"));
  ASSERT_EQ(open(at("pool")), 0);
  EXPECT_EQ(due(), 0);
  perdure_close(pool_);
  use_plan(plan("0.000001"));
  ASSERT_EQ(open(at("pool")), 0);
  EXPECT_EQ(due(), 1);
  EXPECT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
}

TEST_F(PoolEnergy, a_schedule_says_when_each_version_is_due) {
  std::string text = plan("3600");
  text.insert(text.size() - 1, R"(,"schedule":{"works_s":[0.000001,3600]})");
  use_plan(text);
  ASSERT_EQ(open(at("pool")), 0);
  EXPECT_EQ(due(), 1);
  EXPECT_EQ(perdure_commit(pool_, nullptr), 0);
  EXPECT_EQ(due(), 0);
  perdure_close(pool_);
}

TEST_F(PoolEnergy, versions_are_drained_to_the_levels_and_come_back_from_the_newest) {
  use_plan(plan("1", level("partner", 2) + level("global", 3)));
  for (int i = 1; i <= 4; ++i) {
    ASSERT_EQ(open(at("pool")), 0) << perdure_last_error();
    store(i);
    ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
    perdure_close(pool_);  // which waits for the drain
  }
  fs::remove_all(at("pool"));  // the node is lost
  ASSERT_EQ(open(at("pool")), 0) << perdure_last_error();
  EXPECT_EQ(version_, 4U);
  EXPECT_EQ(stored(), 4);
  perdure_close(pool_);
  fs::remove_all(at("pool"));
  fs::remove_all(at("partner"));
  ASSERT_EQ(open(at("pool")), 0) << perdure_last_error();
  EXPECT_EQ(version_, 3U);
  EXPECT_EQ(stored(), 3);
  perdure_close(pool_);
}

TEST_F(PoolEnergy, a_level_that_can_not_be_written_fails_no_commit) {
  use_plan(plan("1", level("partner", 1)));
  for (int i = 1; i <= 2; ++i) {
    ASSERT_EQ(open(at("pool")), 0) << perdure_last_error();
    store(i);
    EXPECT_EQ(perdure_commit(pool_, &version_), 0);
    EXPECT_EQ(version_, static_cast<std::uint64_t>(i));
    perdure_close(pool_);
    if (i == 1) fs::permissions(at("partner/pool"), fs::perms::owner_read | fs::perms::owner_exec);
  }
  fs::permissions(at("partner/pool"), fs::perms::owner_all);
}

// Killed at any moment of many versions, the level holds whole ones, and gives back the newest.
TEST_F(PoolEnergy, a_lost_pool_comes_back_whole_whenever_the_job_was_killed) {
  use_plan(plan("1", level("partner", 1)));
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (open(at("pool")) != 0) ::_exit(1);
      for (;;) {
        store(static_cast<double>(version_ + 1));
        if (perdure_commit(pool_, &version_) != 0) ::_exit(1);
      }
    }
    ::usleep(20'000 + 7'001 * static_cast<unsigned>(round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    fs::remove_all(at("pool"));
    ASSERT_EQ(open(at("pool")), 0) << perdure_last_error();
    EXPECT_EQ(stored(), static_cast<double>(version_));
    perdure_close(pool_);
  }
}

TEST_F(PoolEnergy, tokens_are_taken_for_each_commit_and_restart_and_told) {
  fs::create_directory(at("tokens"));
  ::setenv("PERDURE_ENERGY_TOKENS", at("tokens").c_str(), 1);
  ::setenv("PERDURE_ENERGY_REPORT", at("report").c_str(), 1);
  use_plan(plan("1"));
  ASSERT_EQ(open(at("pool")), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
  std::string line;
  std::ifstream report(at("report"));
  ASSERT_TRUE(std::getline(report, line));
  EXPECT_NE(line.find("\"tokens_taken\":4"), std::string::npos) << line;
  EXPECT_NE(line.find("\"went_ahead\":0"), std::string::npos) << line;
}

TEST_F(PoolEnergy, a_plan_or_profile_that_is_none_is_an_error_of_opening) {
  const std::pair<const char*, std::string> wrong[] = {
      {"PERDURE_ENERGY_PLAN", write("cut", plan("1").substr(0, 40))},
      {"PERDURE_ENERGY_PLAN", at("missing")},
      {"PERDURE_ENERGY_PLAN", write("negative", plan("-1"))},
      {"PERDURE_ENERGY_PROFILE", write("plan-as-profile", plan("1"))},
  };
  for (const auto& [name, file] : wrong) {
    ::setenv(name, file.c_str(), 1);
    EXPECT_LT(perdure_open(at("pool").c_str(), nullptr, &pool_), 0) << file;
    EXPECT_NE(std::string(perdure_last_error()).find(file), std::string::npos)
        << perdure_last_error();
    EXPECT_FALSE(fs::exists(at("pool")));
    ::unsetenv(name);
  }
}

TEST_F(PoolEnergy, a_profile_of_another_device_is_not_applied) {
  ::setenv("PERDURE_ENERGY_PROFILE",
           write("profile", R"({"schema":1,"kind":"perdure-energy-profile","fingerprint":{"device":
                {"name":"elsewhere"}},"points":[{"op":"write","freq_kHz":null,"writers":1,
                "bandwidth_MBps":{"mean":1}}]})")
               .c_str(),
           1);
  ::setenv("PERDURE_ENERGY_REPORT", at("report").c_str(), 1);
  ASSERT_EQ(open(at("pool")), 0);
  ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
  std::string line;
  std::ifstream report(at("report"));
  ASSERT_TRUE(std::getline(report, line));
  EXPECT_NE(line.find("\"tokens_taken\":0"), std::string::npos) << line;
}

}  // namespace
