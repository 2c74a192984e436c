// SPDX-License-Identifier: BSD-3-Clause
//
// Pools that are wrong, foreign, cut, flipped, missing, locked or full: an error that names what
// was found, or the right answer; and nothing is lost by trying.
// ctest: DEPS pool LIBS perdure_shared IN pool_outside
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "perdure/perdure.h"
#include "pmem/region_format.hpp"
#include "pool/job_record_format.hpp"
#include "temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;
using perdure_test::read_file;
using perdure_test::TemporaryDirectory;
using perdure_test::write_file;

constexpr std::uint64_t cells = 3000;

struct Attempt {
  int code = 0;
  std::string message;
  std::uint64_t version = 0;
  double value = 0;
};

// A whole run: opens, restarts, reads the first element, perhaps commits `steps` more.
Attempt run(const std::string& path, int steps = 0, const perdure_options* options = nullptr,
            std::uint64_t count = cells) {
  Attempt attempt;
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  const auto failed = [&](int code) {
    attempt.code = code;
    attempt.message = perdure_last_error();
    return code != 0;
  };
  if (failed(perdure_open(path.c_str(), options, &pool))) return attempt;
  if (!failed(
          perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &count, PERDURE_COPY, nullptr, &u)) &&
      !failed(perdure_restart(pool, &attempt.version))) {
    auto* value = static_cast<double*>(perdure_working(u));
    for (int step = 0; step < steps; ++step) {
      value[0] += 1;
      if (failed(perdure_commit(pool, &attempt.version))) break;
    }
    attempt.value = value[0];
  }
  const int closed = perdure_close(pool);
  if (attempt.code == 0) failed(closed);
  return attempt;
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run(pool_, 5).code, 0) << perdure_last_error();
    record_ = read_file(pool_ + "/job");
    rank_file_ = read_file(pool_ + "/rank-00000");
  }
  void restore() {
    write_file(pool_ + "/job", record_);
    write_file(pool_ + "/rank-00000", rank_file_);
  }
  // After all that was tried, the pool as it was still gives its newest version.
  void expect_nothing_lost() {
    restore();
    const Attempt attempt = run(pool_);
    EXPECT_EQ(attempt.code, 0) << attempt.message;
    EXPECT_EQ(attempt.version, 5U);
    EXPECT_EQ(attempt.value, 5.0);
  }

  TemporaryDirectory directory_;
  std::string pool_ = directory_ / "pool";
  std::string record_;
  std::string rank_file_;
};

TEST_F(BadInput, another_jobs_pool_is_refused_and_can_be_asked_for) {
  perdure_options options{};
  options.job = "another";
  const Attempt attempt = run(pool_, 1, &options);
  EXPECT_EQ(attempt.code, PERDURE_E_FOREIGN);
  EXPECT_NE(attempt.message.find("another"), std::string::npos);
  options.flags = PERDURE_ANY_JOB;
  EXPECT_EQ(run(pool_, 0, &options).version, 5U);
  expect_nothing_lost();
}

TEST_F(BadInput, a_changed_array_size_is_refused) {
  const Attempt attempt = run(pool_, 1, nullptr, cells + 1);
  EXPECT_EQ(attempt.code, PERDURE_E_SHAPE);
  EXPECT_NE(attempt.message.find("3000"), std::string::npos);
  EXPECT_NE(attempt.message.find("3001"), std::string::npos);
  expect_nothing_lost();
}

TEST_F(BadInput, something_else_under_the_name_of_a_pool_is_refused) {
  const std::string file = directory_ / "file";
  write_file(file, "not a directory");
  EXPECT_EQ(run(file, 1).code, PERDURE_E_INVALID);
  EXPECT_EQ(read_file(file), "not a directory");
  write_file(pool_ + "/rank-00000", std::string(100000, 'x'));
  EXPECT_EQ(run(pool_, 1).code, PERDURE_E_DAMAGED);
  write_file(pool_ + "/job", std::string(112, 'x'));
  EXPECT_EQ(run(pool_, 1).code, PERDURE_E_DAMAGED);
  expect_nothing_lost();
}

TEST_F(BadInput, a_truncated_file_is_refused_at_every_length) {
  for (std::size_t size = 0; size < rank_file_.size(); size += 1 + size / 3) {
    write_file(pool_ + "/rank-00000", rank_file_.substr(0, size));
    const Attempt attempt = run(pool_, 1);
    ASSERT_EQ(attempt.code, PERDURE_E_DAMAGED) << size << " " << attempt.message;
  }
  for (std::size_t size = 0; size < record_.size(); ++size) {
    write_file(pool_ + "/job", record_.substr(0, size));
    write_file(pool_ + "/rank-00000", rank_file_);
    ASSERT_EQ(run(pool_, 1).code, PERDURE_E_DAMAGED) << size;
  }
  expect_nothing_lost();
}

TEST_F(BadInput, a_flipped_bit_of_the_job_record_is_refused) {
  for (std::size_t bit = 0; bit < record_.size() * 8; ++bit) {
    std::string flipped = record_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    write_file(pool_ + "/job", flipped);
    ASSERT_EQ(run(pool_, 1).code, PERDURE_E_DAMAGED) << bit;
  }
  expect_nothing_lost();
}

// The header, both slots' used parts and a sample of the data; see also pool_test.
TEST_F(BadInput, a_flipped_bit_of_the_rank_file_never_gives_a_wrong_answer) {
  std::vector<std::size_t> bytes;
  for (std::size_t byte = 0; byte < 240; ++byte) bytes.push_back(byte);
  for (const std::size_t slot : {4096UL, 4096UL + 65536UL}) {
    for (std::size_t byte = 0; byte < 64 + 64 + 192; ++byte) bytes.push_back(slot + byte);
  }
  for (std::size_t byte = 4096 + 2 * 65536; byte < rank_file_.size(); byte += 997) {
    bytes.push_back(byte);
  }
  std::uint64_t refused = 0;
  for (const std::size_t byte : bytes) {
    for (int bit = 0; bit < 8; bit += 3) {
      std::string flipped = rank_file_;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      write_file(pool_ + "/rank-00000", flipped);
      const Attempt attempt = run(pool_);
      if (attempt.code != 0) {
        ++refused;
        continue;
      }
      ASSERT_EQ(attempt.version, 5U) << "byte " << byte;
      ASSERT_EQ(attempt.value, 5.0) << "byte " << byte;
    }
  }
  EXPECT_GT(refused, 1000U);
  expect_nothing_lost();
}

TEST_F(BadInput, a_newer_format_is_refused_by_name) {
  perdure::RegionHeaderFormat header;
  std::memcpy(&header, rank_file_.data(), sizeof header);
  header.format_version = perdure::region_format_version + 1;
  header.checksum = perdure::crc64(&header, offsetof(perdure::RegionHeaderFormat, checksum));
  std::string newer = rank_file_;
  std::memcpy(newer.data(), &header, sizeof header);
  write_file(pool_ + "/rank-00000", newer);
  EXPECT_EQ(run(pool_, 1).code, PERDURE_E_NEWER_FORMAT);
  restore();

  perdure::JobRecordFormat record;
  std::memcpy(&record, record_.data(), sizeof record);
  record.format_version = perdure::job_record_version + 1;
  record.checksum = perdure::crc64(&record, offsetof(perdure::JobRecordFormat, checksum));
  write_file(pool_ + "/job", std::string(reinterpret_cast<const char*>(&record), sizeof record));
  EXPECT_EQ(run(pool_, 1).code, PERDURE_E_NEWER_FORMAT);
  expect_nothing_lost();
}

TEST_F(BadInput, an_older_format_is_refused_by_name) {
  perdure::RegionHeaderFormat header;
  std::memcpy(&header, rank_file_.data(), sizeof header);
  header.format_version = 1;
  header.checksum = perdure::crc64(&header, offsetof(perdure::RegionHeaderFormat, checksum));
  std::string older = rank_file_;
  std::memcpy(older.data(), &header, sizeof header);
  write_file(pool_ + "/rank-00000", older);
  const Attempt attempt = run(pool_, 1);
  EXPECT_EQ(attempt.code, PERDURE_E_UNSUPPORTED);
  EXPECT_NE(attempt.message.find("made by an older Perdure, format 1"), std::string::npos);
  expect_nothing_lost();
}

TEST_F(BadInput, a_missing_file_is_named_and_not_made_anew) {
  fs::remove(pool_ + "/rank-00000");
  Attempt attempt = run(pool_, 1);
  EXPECT_EQ(attempt.code, PERDURE_E_NOT_FOUND);
  EXPECT_NE(attempt.message.find("rank-00000"), std::string::npos);
  restore();
  fs::remove(pool_ + "/job");
  attempt = run(pool_, 1);
  EXPECT_EQ(attempt.code, PERDURE_E_DAMAGED);
  EXPECT_NE(attempt.message.find("version 5"), std::string::npos);
  expect_nothing_lost();
}

TEST_F(BadInput, the_file_of_another_pool_is_refused) {
  const std::string other = directory_ / "other";
  ASSERT_EQ(run(other, 2).code, 0);
  fs::copy_file(other + "/rank-00000", pool_ + "/rank-00000", fs::copy_options::overwrite_existing);
  const Attempt attempt = run(pool_, 1);
  EXPECT_EQ(attempt.code, PERDURE_E_FOREIGN) << attempt.message;
  expect_nothing_lost();
}

// What a poisoned line, or a file cut under a running job, does to a restart.
TEST_F(BadInput, data_that_can_not_be_read_is_an_error_that_names_the_byte) {
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  ASSERT_EQ(perdure_open(pool_.c_str(), nullptr, &pool), 0);
  ASSERT_EQ(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, nullptr, &u), 0);
  ASSERT_EQ(::truncate((pool_ + "/rank-00000").c_str(), 4096 + 2 * 65536 + 4096), 0);
  EXPECT_EQ(perdure_restart(pool, nullptr), PERDURE_E_DAMAGED);
  EXPECT_NE(std::string(perdure_last_error()).find("can't be read"), std::string::npos)
      << perdure_last_error();
  perdure_close(pool);
  expect_nothing_lost();
}

TEST_F(BadInput, discard_starts_anew_also_from_a_damaged_pool) {
  perdure_options options{};
  options.flags = PERDURE_DISCARD;
  for (const char* broken : {"", "/job", "/rank-00000"}) {
    if (*broken != '\0') write_file(pool_ + broken, "broken");
    const Attempt attempt = run(pool_, 2, &options);
    ASSERT_EQ(attempt.code, 0) << attempt.message;
    EXPECT_EQ(attempt.version, 2U);
  }
}

TEST_F(BadInput, discard_takes_images_and_guards_along_and_nothing_else) {
  perdure_options options{};
  const std::string others[] = {pool_ + "/image-00000.0", pool_ + "/guard-00003.2"};
  const std::string notes = pool_ + "/image-of-the-result";
  for (const std::string& path : others) write_file(path, "of a version that is given up");
  write_file(notes, "the user's");
  ASSERT_EQ(run(pool_, 1, &options).code, 0);
  for (const std::string& path : others) EXPECT_TRUE(fs::exists(path)) << path;
  options.flags = PERDURE_DISCARD;
  ASSERT_EQ(run(pool_, 1, &options).code, 0);
  for (const std::string& path : others) EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(notes));
}

TEST_F(BadInput, a_creation_that_was_cut_short_is_made_again) {
  const std::string fresh = directory_ / "fresh";
  fs::create_directory(fresh);
  write_file(fresh + "/rank-00000", std::string(5000, '\0'));  // and no job record
  EXPECT_EQ(run(fresh, 3).version, 3U);
}

TEST_F(BadInput, a_pool_in_use_is_refused_with_the_holder_named) {
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    perdure_pool* pool = nullptr;
    char byte = perdure_open(pool_.c_str(), nullptr, &pool) == 0 ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1 || ::read(done[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  ::setenv("PERDURE_LOCK_WAIT_MS", "50", 1);
  const Attempt attempt = run(pool_, 1);
  ::unsetenv("PERDURE_LOCK_WAIT_MS");
  EXPECT_EQ(attempt.code, PERDURE_E_BUSY);
  EXPECT_NE(attempt.message.find(std::to_string(holder)), std::string::npos) << attempt.message;
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ::waitpid(holder, nullptr, 0);
  expect_nothing_lost();
}

// A file system of its own, of 1 MiB. Needs the right to mount.
class SmallDevice : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(mount_);
    mounted_ = ::mount("perdure-test", mount_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) GTEST_SKIP() << "no right to mount a small tmpfs";
  }
  void TearDown() override {
    if (mounted_) ::umount(mount_.c_str());
  }
  TemporaryDirectory directory_;
  std::string mount_ = directory_ / "mount";
  bool mounted_ = false;
};

TEST_F(SmallDevice, a_full_device_is_an_error_and_leaves_nothing_half_made) {
  const std::string pool = mount_ + "/pool";
  const Attempt attempt = run(pool, 1, nullptr, 1 << 20);
  EXPECT_EQ(attempt.code, PERDURE_E_NO_SPACE) << attempt.message;
  const Attempt small = run(pool, 2, nullptr, 1000);  // the pool is there and works
  EXPECT_EQ(small.code, 0) << small.message;
  EXPECT_EQ(small.version, 2U);
  write_file(mount_ + "/filler", std::string(2 << 20, 'x'));
  const std::string other = mount_ + "/other";
  EXPECT_EQ(run(other, 1).code, PERDURE_E_NO_SPACE);
  EXPECT_FALSE(fs::exists(other));
  EXPECT_EQ(run(pool, 1, nullptr, 1000).version, 3U);  // commits need no new space
}

TEST_F(SmallDevice, a_read_only_device_is_an_error) {
  const std::string pool = mount_ + "/pool";
  ASSERT_EQ(run(pool, 1, nullptr, 1000).code, 0);
  ASSERT_EQ(::mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_EQ(run(pool, 1, nullptr, 1000).code, PERDURE_E_IO);
  EXPECT_EQ(run(mount_ + "/new", 1, nullptr, 1000).code, PERDURE_E_IO);
  ASSERT_EQ(::mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT, nullptr), 0);
  EXPECT_EQ(run(pool, 0, nullptr, 1000).version, 1U);
}

}  // namespace
