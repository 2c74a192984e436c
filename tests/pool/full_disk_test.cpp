// SPDX-License-Identifier: BSD-3-Clause
//
// Full disks whose file systems write changes elsewhere, or let files share blocks: Btrfs, and XFS
// after a copy by reference. All room was taken when the array was opened (P4), so stores to it
// raise no SIGBUS afterwards. Each test has a file system of its own, on a loop device, in a mount
// namespace that goes with the process: nothing is left of it, even when it is killed.
// ctest: LABELS truth TIMEOUT 600
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t cells = 4096;  // 32 KiB: each page of a full Btrfs waits for it
constexpr int arrays = 3;

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

struct Outcome {
  bool signalled = false;
  int code = 0;               // of the first call that failed
  std::uint64_t version = 0;  // the newest that was acknowledged, or restarted from
  double value = 0;
  char message[400] = "";
};

// A job that commits `commits` versions, each with all bytes changed, in a process of its own.
Outcome job(const std::string& pool, int commits, const std::function<void()>& when_open = {}) {
  int ends[2];
  Outcome outcome;
  if (::pipe(ends) != 0) return outcome;
  const pid_t child = ::fork();
  if (child == 0) {
    Outcome own;
    perdure_pool* opened = nullptr;
    std::vector<perdure_array*> all(arrays);
    own.code = perdure_open(pool.c_str(), nullptr, &opened);
    for (int i = 0; i < arrays && own.code == 0; ++i) {
      own.code = perdure_array_open(opened, ("u" + std::to_string(i)).c_str(), PERDURE_DOUBLE, 1,
                                    &cells, PERDURE_COPY, nullptr, &all[static_cast<size_t>(i)]);
    }
    if (own.code == 0) own.code = perdure_restart(opened, &own.version);
    if (own.code == 0) own.value = static_cast<double*>(perdure_working(all[0]))[cells - 1];
    if (own.code == 0 && when_open) when_open();
    for (int i = 0; i < commits && own.code == 0; ++i) {
      own.value = static_cast<double>(own.version + 1);
      for (perdure_array* u : all) {
        std::fill_n(static_cast<double*>(perdure_working(u)), cells, own.value);
      }
      own.code = perdure_commit(opened, &own.version);
    }
    if (own.code != 0) std::snprintf(own.message, sizeof own.message, "%s", perdure_last_error());
    if (opened != nullptr) perdure_close(opened);
    (void)!::write(ends[1], &own, sizeof own);
    ::_exit(0);
  }
  ::close(ends[1]);
  (void)!::read(ends[0], &outcome, sizeof outcome);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.signalled = WIFSIGNALED(status);
  return outcome;
}

class FullDisk : public testing::Test {
 protected:
  // False, and the test is to be skipped: there can't be such a file system here.
  bool make(const std::string& kind, const std::string& options) {
    why_not_ = "needs root, to mount a file system";
    if (::geteuid() != 0) return false;
    why_not_ = "can't have a mount namespace of its own";
    if (::unshare(CLONE_NEWNS) != 0) return false;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    why_not_ = "there is no mkfs." + kind;
    const std::string image = directory_ / "image";
    perdure_test::write_file(image, "");
    fs::resize_file(image, std::uintmax_t{400} << 20U);
    if (!run("mkfs." + kind + " -q " + options + " " + image)) return false;
    why_not_ = "can't mount " + kind + " on a loop device";
    fs::create_directory(place_);
    mounted_ = run("mount -t " + kind + " -o loop " + image + " " + place_);
    return mounted_;
  }
  void TearDown() override {
    if (!mounted_) return;
    EXPECT_TRUE(run("umount " + place_));
  }

  // Nothing fits any more: neither of large pieces nor of small ones.
  void fill() const {
    const int fd = ::open((place_ + "/other").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (std::size_t piece = std::size_t{4} << 20U; piece >= 4096; piece /= 4) {
      const std::vector<char> bytes(piece, 'x');
      while (::write(fd, bytes.data(), bytes.size()) > 0) {
      }
      (void)::fsync(fd);
    }
    ::close(fd);
  }
  void make_room() const {
    fs::remove(place_ + "/other");
    EXPECT_TRUE(run("sync -f " + place_));  // XFS gives the blocks back a little later
  }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string place_ = directory_ / "mounted";
  const std::string pool_ = place_ + "/pool";
  bool mounted_ = false;
  std::string why_not_;
};

TEST_F(FullDisk, of_btrfs_ends_no_job_that_has_its_arrays_open) {
  if (!make("btrfs", "-m single")) GTEST_SKIP() << why_not_;
  ASSERT_EQ(job(pool_, 2).version, 2U);
  const Outcome full = job(pool_, 3, [&] { fill(); });
  EXPECT_FALSE(full.signalled);
  EXPECT_EQ(full.code, 0) << full.message;
  make_room();
  const Outcome after = job(pool_, 0);
  EXPECT_EQ(after.version, 5U) << after.message;
  EXPECT_EQ(after.value, 5);
}

TEST_F(FullDisk,
       of_btrfs_with_a_snapshot_from_before_ends_no_job_that_opens_its_arrays_afterwards) {
  if (!make("btrfs", "-m single")) GTEST_SKIP() << why_not_;
  ASSERT_TRUE(run("btrfs subvolume create " + place_ + "/volume"));
  ASSERT_EQ(job(place_ + "/volume/pool", 2).version, 2U);
  ASSERT_TRUE(run("btrfs subvolume snapshot " + place_ + "/volume " + place_ + "/snapshot"));
  const Outcome full = job(place_ + "/volume/pool", 3, [&] { fill(); });
  EXPECT_FALSE(full.signalled);
  EXPECT_EQ(full.code, 0) << full.message;
  EXPECT_EQ(full.version, 5U);
}

TEST_F(FullDisk, of_xfs_ends_no_job_whose_pool_was_copied_by_reference) {
  if (!make("xfs", "-m reflink=1")) GTEST_SKIP() << why_not_;
  ASSERT_EQ(job(pool_, 2).version, 2U);
  ASSERT_TRUE(run("cp -a --reflink=always " + pool_ + " " + place_ + "/backup"));
  const Outcome full = job(pool_, 30, [&] { fill(); });
  EXPECT_FALSE(full.signalled);
  EXPECT_EQ(full.code, 0) << full.message;
  EXPECT_EQ(full.version, 32U);
}

TEST_F(FullDisk, of_xfs_without_room_for_blocks_of_its_own_is_an_error_when_the_pool_is_opened) {
  if (!make("xfs", "-m reflink=1")) GTEST_SKIP() << why_not_;
  ASSERT_EQ(job(pool_, 2).version, 2U);
  ASSERT_TRUE(run("cp -a --reflink=always " + pool_ + " " + place_ + "/backup"));
  fill();
  const Outcome full = job(pool_, 30);
  EXPECT_FALSE(full.signalled);
  EXPECT_EQ(full.code, PERDURE_E_NO_SPACE) << full.message;
  EXPECT_NE(std::strstr(full.message, "shares with a copy"), nullptr) << full.message;
  make_room();
  const Outcome after = job(pool_, 1);
  EXPECT_EQ(after.version, 3U) << after.message;
}

}  // namespace
