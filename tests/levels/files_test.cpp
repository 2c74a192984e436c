// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs on several nodes with a cached file that is committed with their pool: nodes are lost, come
// back with parts of long ago, or the job is killed at every step of its restart.
// ctest: DEPS levels cache TIMEOUT 280 LONG 1800
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "cache/part_files.hpp"
#include "group_file.hpp"
#include "levels/levels.hpp"
#include "levels/pool_drain.hpp"
#include "levels/verify.hpp"
#include "mortal_group.hpp"
#include "pool/pool_directory.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

constexpr int refused_code = 3;
constexpr int wrong_code = 4;

// What one start of the job does.
struct Start {
  std::vector<std::uint32_t> nodes = {0, 1};  // of each rank
  std::uint64_t commits = 0;
  bool crash = false;         // in the middle of the changes for the version after the last
  bool open_file = true;      // before the first commit
  bool open_late = false;     // after the last commit
  bool slow = false;          // levels take long to copy it
  bool close_file = false;    // before it ends, or crashes
  std::uint64_t kill_at = 0;  // call of the group; 0: never
  std::string obstacle = "";  // to levels
};

struct Found {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> version;  // with which the job began
  std::atomic<std::uint64_t> whole;    // when the file was open
};

class FilesOfJobs : public testing::Test {
 protected:
  FilesOfJobs() {
    fs::create_directory(root_);
    found_ = new (::mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Found{};
    fresh();
  }
  ~FilesOfJobs() override { ::munmap(found_, sizeof(Found)); }

  std::string node(std::uint32_t number) const { return root_ + "/" + std::to_string(number); }
  std::string file() const { return root_ + "/file"; }
  void lose(std::uint32_t number) const { fs::remove_all(node(number)); }
  // With the holes that parts have.
  static void copy(const std::string& from, const std::string& to) {
    fs::remove_all(to);
    const std::string command = "cp -a --sparse=always " + from + " " + to;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void fresh() const {
    for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
    std::ofstream(file()).flush();
  }
  // What is on the nodes and in the file, to begin anew from it.
  void keep_as(const std::string& name) const { copy(root_, root_ + "-" + name); }
  // In place: a file keeps its inode.
  void begin_from(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(root_)) {
      if (entry.is_directory()) fs::remove_all(entry.path());
    }
    for (const auto& entry : fs::directory_iterator(root_ + "-" + name)) {
      if (entry.is_directory()) copy(entry.path(), root_ + "/" + entry.path().filename().string());
    }
    const auto bytes = bytes_of_file(root_ + "-" + name + "/file");
    std::ofstream(file(), std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      const bool part = entry.path().extension() == ".part";
      if (part && !is_unborn(entry.path())) record_file(entry.path());
    }
  }
  // The parts know the file as it is now: a copy of it is a change by somebody else.
  void record_file(const std::string& path) const {
    const auto backing = BackingFile::open(file(), BackingFile::Access::read_write);
    const auto part = attach_part_file(path);
    ASSERT_TRUE(backing.ok()) << backing.status().message();
    ASSERT_TRUE(part.ok()) << part.status().message();
    part.value()->set_backing(&backing.value());
    ASSERT_TRUE(part.value()->changes().begin().ok());
    ASSERT_TRUE(part.value()->changes().end().ok());
  }
  void forget(const std::string& name) const { fs::remove_all(root_ + "-" + name); }

  int run(const Start& start) {
    found_->calls = found_->whole = 0;
    found_->version = UINT64_MAX;
    const pid_t child = ::fork();
    if (child == 0) {
      if (std::freopen((root_ + "/said").c_str(), "w", stderr) == nullptr) ::_exit(1);
      (void)std::setvbuf(stderr, nullptr, _IOLBF, 0);  // what is said before a kill is there
      std::vector<std::uint32_t> numbers = start.nodes;
      ThreadJob threads(numbers);
      std::atomic<int> code{0};
      threads.run([&](ThreadGroup& own) {
        MortalGroup group(own, found_->calls, start.kill_at);
        std::string wrong;
        const Status done = run_rank(group, start, wrong);
        if (done.ok() && wrong.empty()) return;
        if (done.code() == Code::peer_failed) return;
        std::fprintf(stderr, "rank %u: %s%s\n", group.rank(), done.message().c_str(),
                     wrong.c_str());
        code = wrong.empty() ? refused_code : wrong_code;
        threads.end();
      });
      std::fflush(stderr);
      ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string said() const {
    const auto bytes = bytes_of_file(root_ + "/said");
    return {bytes.begin(), bytes.end()};
  }
  LevelsReport verified() const {
    std::vector<std::string> pools;
    for (std::uint32_t number = 0; number < 4; ++number) {
      if (fs::exists(node(number) + "/pool")) pools.push_back(node(number) + "/pool");
    }
    auto report = verify_levels(pools, {.drains = {}});
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.take();
  }

  std::string levels_ = "redundancy=partner;every=6;patience=20s";
  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string root_ = directory_ / "job";
  Found* found_ = nullptr;

 private:
  Status run_rank(Group& group, const Start& start, std::string& wrong) {
    const std::string place = node(start.nodes[group.rank()]);
    const PathParts parts = split_path(place);
    PERDURE_TRY(Directory::make_below(parts.directory, parts.name).status());
    PERDURE_TRY_ASSIGN(const auto settings, parse_level_settings(levels_));
    PERDURE_TRY_ASSIGN(auto levels, Levels::create(group, place + "/pool", settings, Trust::own));
    OpenOptions options;
    options.job_name = "files";
    options.any_ranks = true;
    options.lock_wait_ms = 0;
    options.geometry = {16384, 4096, 4096, 4};  // arrays could wait longer than the file can
    options.pool.taker = levels.get();
    PERDURE_TRY_ASSIGN(auto pool, levels->open(options));
    PERDURE_TRY_ASSIGN(auto* array,
                       pool->open_array("u", {ArrayType::int64, ArrayMode::copy, true, {100}}, {}));
    PERDURE_TRY_ASSIGN(std::uint64_t version, pool->restart());
    auto* const words = reinterpret_cast<std::uint64_t*>(array->working());
    if (words[7] != version) wrong = "the array is of version " + std::to_string(words[7]);
    if (group.rank() == 0) found_->version = version;
    std::unique_ptr<GroupFile> file;
    if (start.open_file && !start.open_late) {
      PERDURE_TRY_ASSIGN(file, GroupFile::open(group, *pool, this->file(), start.obstacle));
      file->read_slowly = start.slow;
      if (wrong.empty()) wrong = file->wrong_at(version);
      if (group.rank() == 0) found_->whole = levels->whole().value_or(VersionId{}).version;
    }
    for (std::uint64_t i = 0; i < start.commits; ++i) {
      words[7] = ++version;
      if (file) PERDURE_TRY(file->change_to(version));
      PERDURE_TRY(pool->commit().status());
    }
    if (start.open_late) {
      PERDURE_TRY_ASSIGN(file, GroupFile::open(group, *pool, this->file(), start.obstacle));
    }
    if (start.crash && file) PERDURE_TRY(file->change_to(version + 1));
    if (start.crash && file) PERDURE_TRY(file->part().write_back(0, true).status());
    if (start.close_file) PERDURE_TRY(file->close());
    if (start.crash) {
      levels->close();  // what was due is whole
      PERDURE_TRY(agree(group, Status::success()));
      std::fflush(stderr);
      ::_exit(killed_code);
    }
    levels->close();
    return Status::success();
  }
};

TEST_F(FilesOfJobs, a_lost_node_takes_file_and_pool_back_to_one_version) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .commits = 2, .crash = true}), killed_code) << said();
  EXPECT_EQ(found_->version, 6U);
  EXPECT_EQ(found_->whole, 6U) << "it is protected again when the file is open";
  lose(0);
  ASSERT_EQ(run({.nodes = {3, 2}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 6U);
  EXPECT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(6));
}

TEST_F(FilesOfJobs, without_a_loss_the_newest_version_is_found_wherever_its_ranks_are) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  ASSERT_EQ(run({.nodes = {1, 0}, .commits = 1, .crash = true}), killed_code) << said();
  EXPECT_EQ(found_->version, 8U);
  ASSERT_EQ(run({.nodes = {1, 0}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 9U);
}

// Whatever was written back, or even removed.
TEST_F(FilesOfJobs, the_file_is_made_of_images_whatever_it_holds) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(0);
  std::ofstream(file(), std::ios::trunc) << std::string(100000, 'x');
  ASSERT_EQ(run({.nodes = {2, 1}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 6U);
  EXPECT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(6));
}

TEST_F(FilesOfJobs, a_commit_waits_until_the_version_before_is_copied) {
  ASSERT_EQ(run({.commits = 14, .crash = true, .slow = true}), killed_code) << said();
  EXPECT_EQ(said().find("could not be given"), std::string::npos) << said();
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}}), 0) << said();
  EXPECT_EQ(found_->version, 12U);
}

// Two images of one version would be taken for one another.
TEST_F(FilesOfJobs, a_file_that_joins_a_version_that_is_taken_waits_for_the_next) {
  ASSERT_EQ(run({.commits = 6, .crash = true, .open_late = true}), killed_code) << said();
  EXPECT_NE(said().find("is kept from the next version on that is due"), std::string::npos)
      << said();
  fresh();
  ASSERT_EQ(run({.commits = 7, .crash = true, .open_late = true}), killed_code) << said();
  EXPECT_NE(said().find("version 7 can be lost on 1 node"), std::string::npos) << said();
}

// No part is left that says of the file that it was committed with the pool, so the restart
// protects the pool alone; from its opening on the file is changed, and needs a version with it.
TEST_F(FilesOfJobs, a_file_that_is_opened_after_its_version_was_protected_is_protected_too) {
  levels_ = "redundancy=partner;every=60;patience=20s";
  ASSERT_EQ(run({.commits = 2, .close_file = true}), 0) << said();
  ASSERT_EQ(run({.commits = 2, .crash = true}), killed_code) << said();
  EXPECT_EQ(found_->whole, 2U) << said();
  const std::string words = said();
  const std::string again = "version 2 can be lost on 1 node of each failure group again";
  EXPECT_NE(words.find(again, words.find(again) + 1), std::string::npos) << words;
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 2U);
  EXPECT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(2));
}

// Killed at every call on the way there, after which a node is lost. Until the version has the
// file, that has all by itself, and the parts of other nodes are no obstacle.
TEST_F(FilesOfJobs, a_file_that_is_about_to_be_protected_is_lost_at_no_step) {
  levels_ = "redundancy=partner;every=60;patience=20s";
  ASSERT_EQ(run({.commits = 2, .close_file = true}), 0) << said();
  keep_as("closed");
  const std::string protected_again = "version 2 can be lost on 1 node";
  std::uint64_t lost = 0;
  const Cases calls = some_cases(1, 8);
  for (std::uint64_t kill_at = calls.first;; kill_at += calls.step) {
    begin_from("closed");
    if (run({.commits = 2, .kill_at = kill_at}) != killed_code) break;
    if (said().find(protected_again) == std::string::npos) continue;
    ++lost;
    lose(1);
    ASSERT_EQ(run({.nodes = {0, 2}, .close_file = true}), 0) << "killed at call " << kill_at << "\n"
                                                             << said();
    ASSERT_EQ(found_->version, 2U);
    ASSERT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(2)) << "killed at " << kill_at;
  }
  EXPECT_GT(lost, 0U);
  forget("closed");
}

// The redundancy of a version without the file would be no help.
TEST_F(FilesOfJobs, a_second_loss_before_the_file_is_open_again_gives_no_other_file) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .crash = true, .open_file = false}), killed_code) << said();
  ASSERT_EQ(found_->version, 6U);
  lose(0);
  EXPECT_EQ(run({.nodes = {3, 2}}), refused_code) << said();
}

// Only the part of one node: the pool has version 8, and the file can't go there.
TEST_F(FilesOfJobs, a_version_whose_parts_are_not_all_there_counts_as_lost) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  const auto remove_parts = [&](std::uint32_t number) {
    for (const auto& entry : fs::directory_iterator(node(number) + "/pool")) {
      if (is_part_name(entry.path().filename())) fs::remove(entry.path());
    }
  };
  EXPECT_EQ(verified().now.level, RestartLevel::pool);
  remove_parts(1);
  const LevelsReport report = verified();
  EXPECT_EQ(report.now.level, RestartLevel::nodes);
  EXPECT_EQ(report.now.id.version, 6U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("the part that node 1 of 2 kept"), std::string::npos)
      << report.problems[0];
  ASSERT_EQ(run({.commits = 1, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 6U);
  EXPECT_NE(said().find("the part that node 1 of 2 kept"), std::string::npos) << said();
}

// Its numbers are the same, its history is another.
TEST_F(FilesOfJobs, a_part_on_a_node_that_comes_back_is_not_taken_for_one_of_this_life) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  copy(node(1), root_ + "/away");
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .commits = 2, .crash = true}), killed_code) << said();
  ASSERT_EQ(found_->version, 6U);
  copy(root_ + "/away", node(1));
  ASSERT_EQ(run({.nodes = {1, 2}, .commits = 1, .crash = true}), killed_code) << said();
  EXPECT_EQ(found_->version, 6U) << "node 0 is away";
  copy(root_ + "/away", node(1));
  ASSERT_EQ(run({.nodes = {1, 2}, .close_file = true}), 0) << said();
}

TEST_F(FilesOfJobs, a_part_of_an_older_life_goes_when_this_life_has_its_own) {
  ASSERT_EQ(run({.nodes = {0, 1, 2}, .commits = 8, .crash = true}), killed_code);
  copy(node(2), root_ + "/away");
  lose(2);
  ASSERT_EQ(run({.nodes = {0, 1, 3}, .commits = 2, .crash = true}), killed_code) << said();
  ASSERT_EQ(found_->version, 6U);
  // The two ranks of node 3 and of what came back share neither file nor part.
  copy(root_ + "/away", node(2));
  ASSERT_EQ(run({.nodes = {0, 1, 3}, .commits = 1, .crash = true}), killed_code) << said();
  EXPECT_EQ(found_->version, 8U);
  ASSERT_EQ(run({.nodes = {0, 1, 3}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 9U);
}

TEST_F(FilesOfJobs, another_number_of_ranks_is_refused_by_the_name_of_the_file_and_loses_nothing) {
  const std::string partner = levels_ += ";drain=" + directory_ / "drain";
  ASSERT_EQ(run({.commits = 14, .crash = true}), killed_code);
  levels_ = "redundancy=off;every=6;patience=20s;drain=" + directory_ / "drain";
  for (const std::vector<std::uint32_t>& nodes :
       {std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0, 1, 2}}) {
    EXPECT_EQ(run({.nodes = nodes, .open_file = false}), refused_code) << said();
    EXPECT_NE(said().find(file() + " is committed with it"), std::string::npos) << said();
    EXPECT_NE(said().find("start 2 ranks, and close the file"), std::string::npos) << said();
  }
  levels_ = partner;
  EXPECT_EQ(run({.commits = 1}), 0) << said();
  EXPECT_EQ(found_->version, 14U);
}

TEST_F(FilesOfJobs, a_closed_file_belongs_to_no_later_version) {
  ASSERT_EQ(run({.commits = 7, .close_file = true}), 0) << said();
  const auto closed = bytes_of_file(file());
  EXPECT_EQ(closed, GroupFileContents{2}.at(7));
  ASSERT_EQ(run({.commits = 6, .crash = true, .open_file = false}), killed_code) << said();
  EXPECT_EQ(found_->version, 7U);
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .open_file = false}), 0) << said();
  EXPECT_EQ(found_->version, 12U);
  EXPECT_EQ(bytes_of_file(file()), closed);
}

TEST_F(FilesOfJobs, a_commit_without_the_file_of_the_restart_is_told) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .commits = 1, .open_file = false}), 0) << said();
  EXPECT_NE(said().find("version 7 was committed without " + file()), std::string::npos) << said();
  EXPECT_EQ(run({.nodes = {0, 2}}), refused_code);
  EXPECT_NE(said().find("perdure cache discard"), std::string::npos) << said();
}

TEST_F(FilesOfJobs, a_pool_that_was_brought_back_needs_its_levels_until_its_file_is_there) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(1);
  ASSERT_EQ(run({.nodes = {0, 2}, .open_file = false}), 0) << said();
  levels_ = "redundancy=off";
  EXPECT_EQ(run({.nodes = {0, 2}, .close_file = true}), 0) << "images are read all the same";
  EXPECT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(6));
}

TEST_F(FilesOfJobs, what_levels_can_not_keep_is_refused_if_they_were_asked_for) {
  EXPECT_EQ(run({.commits = 1, .obstacle = "it is a test"}), refused_code);
  EXPECT_NE(said().find("can't be kept on the levels of this pool: it is a test"),
            std::string::npos)
      << said();
  fresh();
  levels_ = "every=6";  // redundancy by default, because there are two nodes
  ASSERT_EQ(run({.commits = 7, .crash = true, .obstacle = "it is a test"}), killed_code) << said();
  EXPECT_NE(said().find("no redundancy: file "), std::string::npos) << said();
  EXPECT_EQ(verified().kept.size(), 0U);
}

TEST_F(FilesOfJobs, a_ring_that_lacks_its_files_is_not_drained) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  fs::create_directory(root_ + "/drain");
  for (const std::uint32_t number : {0U, 1U}) {
    const auto report = drain_pool(node(number) + "/pool", root_ + "/drain", {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_EQ(report.value().problems.size(), 1U);
    EXPECT_NE(report.value().problems[0].find("cached files are committed"), std::string::npos);
    ASSERT_EQ(report.value().versions.size(), 1U);
    EXPECT_EQ(report.value().versions[0].id.version, 6U);
  }
  lose(0);
  lose(1);
  levels_ = "redundancy=off;drain=" + root_ + "/drain";
  ASSERT_EQ(run({.nodes = {2, 3}, .close_file = true}), 0) << said();
  EXPECT_EQ(found_->version, 6U);
}

// The restart after a loss, killed at every call of its ranks' group, after which another node may
// be lost as well if the version had its redundancy again.
TEST_F(FilesOfJobs, a_restart_that_is_killed_at_any_step_leaves_what_there_was) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  lose(1);
  keep_as("lost");
  ASSERT_EQ(run({.nodes = {0, 2}, .close_file = true}), 0) << said();
  const std::uint64_t calls = found_->calls;
  ASSERT_GT(calls, 60U);
  const Cases cases = some_cases(1, 8);
  for (std::uint64_t kill_at = cases.first; kill_at <= calls; kill_at += cases.step) {
    begin_from("lost");
    const int code = run({.nodes = {0, 2}, .kill_at = kill_at});
    if (code == 0) break;
    ASSERT_EQ(code, killed_code) << said();
    const bool protected_again = found_->whole == 6;
    if (protected_again && kill_at % 2 == 0) lose(0);
    ASSERT_EQ(run({.nodes = {protected_again ? 3U : 0U, 2}, .close_file = true}), 0)
        << "killed at call " << kill_at << " of " << calls << "\n"
        << said();
    ASSERT_EQ(found_->version, 6U);
    ASSERT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(6)) << "killed at " << kill_at;
  }
  forget("lost");
}

// The same without a loss: the parts of both nodes must go back to the newest version.
TEST_F(FilesOfJobs, a_restart_from_parts_that_is_killed_at_any_step_leaves_what_there_was) {
  ASSERT_EQ(run({.commits = 8, .crash = true}), killed_code);
  keep_as("killed");
  ASSERT_EQ(run({.close_file = true}), 0) << said();
  const std::uint64_t calls = found_->calls;
  const Cases cases = some_cases(1, 8);
  for (std::uint64_t kill_at = cases.first; kill_at <= calls; kill_at += cases.step) {
    begin_from("killed");
    if (run({.close_file = true, .kill_at = kill_at}) == 0) break;
    keep_as("again");
    ASSERT_EQ(run({.close_file = true}), 0) << "killed at call " << kill_at << "\n" << said();
    ASSERT_EQ(found_->version, 8U);
    ASSERT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(8)) << "killed at " << kill_at;
    begin_from("again");
    lose(1);
    ASSERT_EQ(run({.nodes = {0, 2}, .close_file = true}), 0)
        << "killed at call " << kill_at << ", and node 1 lost\n"
        << said();
    const std::uint64_t found = found_->version;
    ASSERT_GE(found, 6U);
    ASSERT_EQ(bytes_of_file(file()), GroupFileContents{2}.at(found)) << "killed at " << kill_at;
  }
  forget("killed");
  forget("again");
}

}  // namespace
}  // namespace perdure
