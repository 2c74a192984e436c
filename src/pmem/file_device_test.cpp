// SPDX-License-Identifier: BSD-3-Clause
//
// Devices on files: what is stored stays, growing never moves or loses bytes, and every refusal
// says why.
#include "pmem/file_device.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "pmem/address_range.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

using perdure_test::TemporaryDirectory;

constexpr std::size_t mib = std::size_t{1} << 20U;

bool says(const Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

bool is_tmpfs(const std::string& directory) {
  struct statfs file_system{};
  return ::statfs(directory.c_str(), &file_system) == 0 && file_system.f_type == TMPFS_MAGIC;
}

std::unique_ptr<Device> open_or_die(const std::string& path, const FileDeviceOptions& options) {
  auto device = open_file_device(path, options);
  EXPECT_TRUE(device.ok()) << device.status().message();
  return device.ok() ? device.take() : nullptr;
}

std::unique_ptr<Device> create(const std::string& path, FileKind kind = FileKind::automatic) {
  return open_or_die(path, {.kind = kind, .create = true});
}

std::unique_ptr<Device> reopen(const std::string& path) {
  return open_or_die(path, {});
}

Status open_error(const std::string& path, const FileDeviceOptions& options) {
  const auto device = open_file_device(path, options);
  EXPECT_FALSE(device.ok());
  return device.ok() ? Status() : device.status();
}

// Both kinds of file that any machine has: one on tmpfs and one that is written back.
class FileDeviceTest : public ::testing::TestWithParam<FileKind> {
 protected:
  void SetUp() override {
    if (GetParam() == FileKind::tmpfs && !is_tmpfs("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  }
  std::unique_ptr<Device> create_pool() { return create(pool(), GetParam()); }
  std::string pool() const { return directory_ / "pool"; }
  const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_{GetParam() == FileKind::tmpfs ? "/dev/shm" : ::testing::TempDir()};
};

INSTANTIATE_TEST_SUITE_P(Kinds, FileDeviceTest,
                         ::testing::Values(FileKind::tmpfs, FileKind::ordinary),
                         [](const auto& tested) {
                           return tested.param == FileKind::tmpfs ? "tmpfs" : "ordinary";
                         });

// Copies, stores, and pages of which both are in: all that another process would see as well.
TEST_P(FileDeviceTest, a_file_that_is_filled_by_copies_first_has_what_was_stored) {
  auto device = open_or_die(pool(), {.kind = GetParam(), .create = true, .copied_first = true});
  ASSERT_TRUE(device->resize(40 * mib).ok());
  std::vector<std::byte> expected(40 * mib);
  std::vector<std::byte> source(mib + 17);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
  for (const std::size_t offset : {std::size_t{0}, 3 * mib + 5, 30 * mib}) {
    device->copy(offset, source.data(), source.size());
    std::memcpy(expected.data() + offset, source.data(), source.size());
  }
  const std::string other = directory() / "other";
  std::ofstream(other, std::ios::binary)
      .write(reinterpret_cast<const char*>(source.data()), static_cast<long>(source.size()));
  const int fd = ::open(other.c_str(), O_RDONLY);
  EXPECT_FALSE(device->copy_from(5 * mib, fd, 5000, mib)) << "it has no so many bytes";
  const bool copied = device->copy_from(5 * mib, fd, 4096, mib / 2);
  EXPECT_EQ(copied, GetParam() == FileKind::tmpfs);
  ::close(fd);
  if (!copied) device->copy(5 * mib, source.data() + 4096, mib / 2);
  std::memset(device->base() + 5 * mib + mib / 2, 0, mib / 2 + 17);
  std::memcpy(expected.data() + 5 * mib, source.data() + 4096, mib / 2);
  device->copy(9 * mib, source.data(), 100);
  device->store(30 * mib + 3, source.data(), 8);
  std::memcpy(expected.data() + 9 * mib, source.data(), 100);
  std::memcpy(expected.data() + 30 * mib + 3, source.data(), 8);
  EXPECT_EQ(std::memcmp(device->base(), expected.data(), 10 * mib), 0);
  device->flush(0, 40 * mib);
  ASSERT_TRUE(device->fence().ok());
  device->touch_pages();
  device->copy(20 * mib, source.data(), source.size());
  std::memcpy(expected.data() + 20 * mib, source.data(), source.size());
  ASSERT_TRUE(device->fence().ok());
  ASSERT_TRUE(device->resize(41 * mib).ok());
  EXPECT_EQ(std::memcmp(device->base(), expected.data(), 40 * mib), 0);
  device.reset();
  EXPECT_EQ(std::memcmp(reopen(pool())->base(), expected.data(), 40 * mib), 0);
}

TEST_P(FileDeviceTest, a_new_file_is_empty_and_grows_by_whole_pages) {
  const auto device = create_pool();
  EXPECT_EQ(device->size_bytes(), 0U);
  ASSERT_TRUE(device->resize(5000).ok());
  EXPECT_EQ(device->size_bytes(), 8192U);
  ASSERT_TRUE(device->resize(100).ok());
  EXPECT_EQ(device->size_bytes(), 8192U) << "never shrinks";
}

TEST_P(FileDeviceTest, keeps_its_bytes_when_it_is_reopened) {
  {
    const auto device = create_pool();
    ASSERT_TRUE(device->resize(mib).ok());
    device->store(1, "stored", 6);
    device->store_word(64, 0x0123456789abcdefU);
    device->flush(0, 128);
    device->copy(4095, "copied", 6);
    ASSERT_TRUE(device->fence().ok());
  }
  const auto device = reopen(pool());
  ASSERT_EQ(device->size_bytes(), mib);
  EXPECT_EQ(std::memcmp(device->base() + 1, "stored", 6), 0);
  EXPECT_EQ(std::memcmp(device->base() + 4095, "copied", 6), 0);
  std::uint64_t word = 0;
  std::memcpy(&word, device->base() + 64, sizeof word);
  EXPECT_EQ(word, 0x0123456789abcdefU);
}

TEST_P(FileDeviceTest, keeps_its_base_and_bytes_while_it_grows) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(4096).ok());
  std::byte* const base = device->base();
  std::memset(base, 0x5a, 4096);
  for (std::size_t size = 8192; size <= 64 * mib; size *= 4) {
    ASSERT_TRUE(device->resize(size).ok());
    ASSERT_EQ(device->base(), base);
    ASSERT_EQ(base[0], std::byte{0x5a});
    ASSERT_EQ(base[4095], std::byte{0x5a});
    ASSERT_EQ(base[size - 1], std::byte{0});
    base[size - 1] = std::byte{0x77};
    ASSERT_EQ(base[size / 4 - 1], size == 8192 ? std::byte{0x5a} : std::byte{0x77});
  }
}

TEST_P(FileDeviceTest, grows_a_file_whose_size_is_no_multiple_of_a_page) {
  create_pool().reset();
  std::filesystem::resize_file(pool(), 5000);
  const auto device = reopen(pool());
  EXPECT_EQ(device->size_bytes(), 5000U);
  device->store(4990, "0123456789", 10);
  ASSERT_TRUE(device->resize(5001).ok());
  EXPECT_EQ(device->size_bytes(), 8192U);
  EXPECT_EQ(std::memcmp(device->base() + 4990, "0123456789", 10), 0);
}

TEST_P(FileDeviceTest, counts_what_it_did_with_flushes_rounded_to_granules) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(mib).ok());
  const std::size_t granule = device->describe().granule_bytes;
  EXPECT_EQ(granule, GetParam() == FileKind::tmpfs ? 64U : 4096U);
  device->flush(0, 0);
  EXPECT_EQ(device->counters().flushed_bytes, 0U);
  device->flush(granule - 1, 1);
  EXPECT_EQ(device->counters().flushed_bytes, granule);
  device->flush(granule - 1, 2);
  EXPECT_EQ(device->counters().flushed_bytes, 3 * granule);
  device->flush(granule, granule);
  EXPECT_EQ(device->counters().flushed_bytes, 4 * granule);
  const ByteRange ranges[] = {{1, 2}, {granule, granule}, {granule - 1, granule + 1}};
  device->flush_each(ranges);
  EXPECT_EQ(device->counters().flushed_bytes, 7 * granule);
  EXPECT_EQ(device->counters().flush_calls, 7U);
  device->store(3, "abc", 3);
  device->store_word(8, 1);
  device->copy(7, "abcde", 5);
  ASSERT_TRUE(device->fence().ok());
  const DeviceCounters counters = device->counters();
  EXPECT_EQ(counters.flush_calls, 7U);
  EXPECT_EQ(counters.stored_bytes, 11U);
  EXPECT_EQ(counters.copied_bytes, 5U);
  EXPECT_EQ(counters.fence_calls, 1U);
  EXPECT_EQ(counters.model_ns, 0U);
}

TEST_P(FileDeviceTest, counts_what_several_threads_did_at_once) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(mib).ok());
  const std::uint64_t fences = device->counters().fence_calls;
  constexpr std::uint64_t copies = 20'000;
  const auto work = [&](std::uint64_t at) {
    for (std::uint64_t i = 0; i < copies; ++i) device->copy(at, &i, sizeof i);
    EXPECT_TRUE(device->fence().ok());
  };
  std::vector<std::thread> others;
  for (std::uint64_t i = 1; i < 4; ++i) others.emplace_back(work, 64 * i);
  work(0);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(device->counters().copied_bytes, 4 * copies * sizeof(std::uint64_t));
  EXPECT_EQ(device->counters().fence_calls, fences + 4);
}

TEST_P(FileDeviceTest, describes_what_survives) {
  const auto device = create_pool();
  const DeviceDescription description = device->describe();
  EXPECT_NE(description.name.find(pool()), std::string::npos);
  if (GetParam() == FileKind::tmpfs) {
    EXPECT_EQ(description.persistence, PersistenceClass::process_crash);
  }
}

TEST_P(FileDeviceTest, opens_read_only_without_a_lock) {
  const auto writer = create_pool();
  ASSERT_TRUE(writer->resize(4096).ok());
  writer->store(0, "seen", 4);
  const auto reader = open_or_die(pool(), {.read_only = true, .lock_wait_ms = 0});
  EXPECT_EQ(std::memcmp(reader->base(), "seen", 4), 0);
  EXPECT_EQ(reader->resize(8192).code(), Code::wrong_state);
  EXPECT_DEATH(reader->store(0, "x", 1), "read_only");
}

TEST_P(FileDeviceTest, asserts_that_ranges_are_inside) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(4096).ok());
  EXPECT_DEATH(device->copy(4090, "0123456789", 10), "internal error");
  EXPECT_DEATH(device->flush(~std::uint64_t{0}, 2), "internal error");
  EXPECT_DEATH(device->store_word(4, 1), "internal error");
}

TEST_P(FileDeviceTest, refuses_paths_that_can_not_be_right_with_a_remedy) {
  const Status missing = open_error(pool(), {});
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_TRUE(says(missing, pool()) && says(missing, "create it")) << missing.message();
  create_pool().reset();
  const Status existing = open_error(pool(), {.create = true});
  EXPECT_EQ(existing.code(), Code::wrong_state);
  EXPECT_TRUE(says(existing, "have it removed")) << existing.message();
  const Status nowhere = open_error(directory() / "no/pool", {.create = true});
  EXPECT_EQ(nowhere.code(), Code::not_found);
  EXPECT_TRUE(says(nowhere, "directory")) << nowhere.message();
  EXPECT_EQ(open_error(directory() / "no/pool", {}).code(), Code::not_found);
  const std::string name = std::filesystem::path(directory().path()).filename();
  EXPECT_TRUE(says(open_error(directory() / ("../" + name), {}), "a directory"));
  EXPECT_TRUE(says(open_error("/dev/null", {.trust = Trust::anyone}), "a device"));
  EXPECT_EQ(open_error(pool(), {.create = true, .read_only = true}).code(), Code::invalid_argument);
}

TEST_P(FileDeviceTest, removes_a_file_that_it_created_but_could_not_open) {
  const auto refused = open_file_device(pool(), {.kind = FileKind::dax, .create = true});
  if (refused.ok()) GTEST_SKIP() << "this file system is DAX";
  EXPECT_FALSE(std::filesystem::exists(pool()));
}

TEST_P(FileDeviceTest, refuses_a_size_beyond_its_addresses) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(4096).ok());
  EXPECT_EQ(device->resize(std::uint64_t{1} << 50U).code(), Code::no_space);
  EXPECT_EQ(device->size_bytes(), 4096U);
}

// Waits for the child and says how it ended.
int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(FileDeviceTest, says_how_much_a_file_lacks_that_no_reopening_would_make_large_enough) {
  const auto device = create_pool();
  const Status status = device->resize(std::uint64_t{1} << 48U);
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_TRUE(says(status, "bytes more, and its file system has")) << status.message();
  EXPECT_FALSE(says(status, "reopen")) << status.message();
}

TEST_P(FileDeviceTest, names_the_process_that_holds_the_lock) {
  create_pool().reset();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto held = open_file_device(pool(), {});
    const char answer = held.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char answer = 'n';
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const Status busy = open_error(pool(), {.lock_wait_ms = 30});
  EXPECT_EQ(busy.code(), Code::busy);
  EXPECT_TRUE(says(busy, std::to_string(child))) << busy.message();
  ::kill(child, SIGKILL);
  exit_code_of(child);
  EXPECT_TRUE(open_file_device(pool(), {.lock_wait_ms = 0}).ok()) << "the lock died with it";
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_P(FileDeviceTest, waits_for_a_lock_that_is_released_in_time) {
  auto first = create_pool();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(open_error(pool(), {.lock_wait_ms = 0}).code(), Code::busy) << "also in one process";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto held = open_file_device(pool(), {.lock_wait_ms = 60'000});
    (void)!::write(ends[1], "x", 1);
    ::usleep(50'000);  // with the end of this process its lock goes
    ::_exit(held.ok() ? 0 : 1);
  }
  first.reset();
  char said = 0;
  ASSERT_EQ(::read(ends[0], &said, 1), 1);
  EXPECT_TRUE(open_file_device(pool(), {.lock_wait_ms = 60'000}).ok());
  EXPECT_EQ(exit_code_of(child), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(FileDeviceTest, reopens_a_truncated_file_with_the_size_that_is_left) {
  {
    const auto device = create_pool();
    ASSERT_TRUE(device->resize(mib).ok());
  }
  std::filesystem::resize_file(pool(), 4096);
  EXPECT_EQ(reopen(pool())->size_bytes(), 4096U);
}

TEST_P(FileDeviceTest, notices_at_resize_that_the_file_was_cut_or_removed) {
  const auto device = create_pool();
  ASSERT_TRUE(device->resize(mib).ok());
  std::filesystem::resize_file(pool(), 4096);
  const Status cut = device->resize(2 * mib);
  EXPECT_TRUE(says(cut, "was cut from 1048576 to 4096")) << cut.message();
  std::filesystem::remove(pool());
  EXPECT_TRUE(says(device->resize(2 * mib), "was removed"));
}

TEST_P(FileDeviceTest, allocates_the_holes_of_a_sparse_file) {
  create_pool().reset();
  std::filesystem::resize_file(pool(), 4 * mib);
  reopen(pool()).reset();
  struct stat status{};
  ASSERT_EQ(::stat(pool().c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(4 * mib));
}

// The limit is the process's own, so a child takes it.
TEST_P(FileDeviceTest, keeps_its_old_size_when_the_limit_of_file_sizes_is_reached) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{mib, mib};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const auto device = create_pool();
    if (device == nullptr || !device->resize(mib / 2).ok()) ::_exit(2);
    device->store(mib / 2 - 4, "last", 4);
    const Status full = device->resize(2 * mib);
    if (full.code() != Code::no_space || !says(full, "ulimit -f")) ::_exit(3);
    if (device->size_bytes() != mib / 2) ::_exit(4);
    if (std::memcmp(device->base() + mib / 2 - 4, "last", 4) != 0) ::_exit(5);
    ::_exit(std::filesystem::file_size(pool()) == mib / 2 ? 0 : 6);
  }
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST(TmpfsDevice, keeps_its_old_size_when_the_file_system_is_full) {
  const TemporaryDirectory directory(::testing::TempDir());
  if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs privileges: " << std::strerror(errno);
  }
  {
    const auto device = create(directory / "pool");
    EXPECT_TRUE(device->resize(mib / 2).ok());
    device->store(mib / 2 - 4, "last", 4);
    const Status full = device->resize(4 * mib);
    EXPECT_EQ(full.code(), Code::no_space);
    EXPECT_TRUE(says(full, "free space")) << full.message();
    EXPECT_EQ(device->size_bytes(), mib / 2);
    EXPECT_EQ(std::filesystem::file_size(directory / "pool"), mib / 2);
    EXPECT_EQ(std::memcmp(device->base() + mib / 2 - 4, "last", 4), 0);
    EXPECT_TRUE(device->resize(mib / 2 + 4096).ok()) << "what fits is still granted";
  }
  EXPECT_EQ(::umount2(directory.path().c_str(), MNT_DETACH), 0);
}

TEST(TmpfsDevice, is_chosen_by_itself_on_a_tmpfs) {
  if (!is_tmpfs("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  const TemporaryDirectory directory("/dev/shm");
  EXPECT_EQ(create(directory / "pool")->describe().name, "tmpfs file " + (directory / "pool"));
}

TEST(TmpfsDevice, is_not_taken_for_dax) {
  if (!is_tmpfs("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  const TemporaryDirectory directory("/dev/shm");
  const Status refused = open_error(directory / "pool", {.kind = FileKind::dax, .create = true});
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_TRUE(says(refused, "MAP_SYNC") && says(refused, "-o dax")) << refused.message();
}

// What /proc/self/smaps says of the mapping at `base`, in KiB.
std::size_t smaps_kib(const std::byte* base, const std::string& field) {
  std::ifstream maps("/proc/self/smaps");
  char wanted[32];
  std::snprintf(wanted, sizeof wanted, "%zx-", reinterpret_cast<std::size_t>(base));
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || line.rfind(wanted, 0) == 0;
    if (found && line.rfind(field + ":", 0) == 0) return std::stoul(line.substr(field.size() + 1));
  }
  return 0;
}

TEST(TmpfsDevice, maps_a_large_file_in_the_background_to_its_last_page) {
  if (!is_tmpfs("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  const TemporaryDirectory directory("/dev/shm");
  const std::string path = directory / "pool";
  const std::size_t bytes = 64 * mib + 4096;
  {
    const auto device = create(path);
    ASSERT_TRUE(device->resize(bytes).ok());
    for (std::size_t at = 0; at < bytes; at += 4096) device->store(at, &at, sizeof at);
    ASSERT_TRUE(device->fence().ok());
  }
  const auto device = open_or_die(path, {});
  for (std::size_t at = bytes; at != 0; at -= 4096) {  // against the thread's direction
    std::size_t stored = 0;
    std::memcpy(&stored, device->base() + at - 4096, sizeof stored);
    ASSERT_EQ(stored, at - 4096);
  }
  const auto again = [&] { return smaps_kib(device->base(), "Rss") * 1024 < bytes; };
  for (int i = 0; i < 2000 && again(); ++i) ::usleep(10'000);
  EXPECT_EQ(smaps_kib(device->base(), "Rss") * 1024, bytes);
}

TEST(TmpfsDevice, may_be_closed_while_its_pages_are_being_mapped) {
  if (!is_tmpfs("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  const TemporaryDirectory directory("/dev/shm");
  ASSERT_TRUE(create(directory / "pool")->resize(64 * mib).ok());
  for (int i = 0; i < 30; ++i) {
    const auto device = open_or_die(directory / "pool", {});
    if (i % 3 == 1) {  // maps more beside the thread
      ASSERT_TRUE(device->resize((64 + static_cast<std::size_t>(i)) * mib).ok());
    }
    if (i % 3 == 2) device->store(0, "x", 1);
  }
}

TEST(OrdinaryDevice, is_not_taken_for_tmpfs) {
  if (is_tmpfs(::testing::TempDir())) GTEST_SKIP() << "the temporary directory is a tmpfs";
  const TemporaryDirectory directory(::testing::TempDir());
  const Status refused = open_error(directory / "pool", {.kind = FileKind::tmpfs, .create = true});
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_TRUE(says(refused, "/dev/shm")) << refused.message();
}

// The first failed write-back stays: the kernel forgets pages that it could not write, so a later
// fence must not succeed.
TEST(OrdinaryDevice, reports_a_failed_write_back_at_every_later_fence) {
  const TemporaryDirectory directory(::testing::TempDir());
  const auto device = create(directory / "pool", FileKind::ordinary);
  ASSERT_TRUE(device->resize(mib).ok());
  device->copy(0, "x", 1);
  ASSERT_TRUE(device->fence().ok());
  std::filesystem::remove(directory / "pool");
  EXPECT_TRUE(device->fence().ok()) << "nothing was noted, so nothing is written";
  device->copy(0, "x", 1);
  EXPECT_EQ(device->fence().code(), Code::io_error);
  EXPECT_EQ(device->fence().code(), Code::io_error);
}

// Dirty pages of the file itself, which only write-back cleans.
std::size_t dirty_kib(const std::byte* base) {
  return smaps_kib(base, "Shared_Dirty") + smaps_kib(base, "Private_Dirty");
}

TEST(OrdinaryDevice, writes_back_at_the_fence_and_not_before) {
  if (is_tmpfs(::testing::TempDir())) GTEST_SKIP() << "the temporary directory is a tmpfs";
  const TemporaryDirectory directory(::testing::TempDir());
  const auto device = create(directory / "pool", FileKind::ordinary);
  ASSERT_TRUE(device->resize(mib).ok());
  EXPECT_EQ(dirty_kib(device->base()), 0U) << "allocating dirties no page";
  const std::vector<std::byte> bytes(65536, std::byte{1});
  device->copy(0, bytes.data(), bytes.size());
  if (dirty_kib(device->base()) == 0) GTEST_SKIP() << "/proc/self/smaps shows no dirty pages here";
  EXPECT_EQ(dirty_kib(device->base()), 64U);
  ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(dirty_kib(device->base()), 0U);
}

TEST(AddressRange, is_aligned_to_huge_pages_and_untouchable_until_mapped) {
  const auto range = AddressRange::reserve(std::uint64_t{1} << 30U);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range.value().base()) % (2 * mib), 0U);
  EXPECT_GE(range.value().capacity_bytes(), std::uint64_t{1} << 30U);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(range.value().base()) = 1, "");
}

}  // namespace
}  // namespace perdure
