// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays in log mode: whatever was stored into a buffer, by whomever, is in the next version. With
// the tracker that PERDURE_TRACKER names.
// ctest: LABELS truth
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace {

using perdure_test::TemporaryDirectory;

constexpr std::size_t page = 4096;

bool by_faults() {
  const char* const asked = std::getenv("PERDURE_TRACKER");
  return asked != nullptr && std::string_view(asked) == "faults";
}

// Memory of the test, at a page.
class Pages {
 public:
  explicit Pages(std::size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
      : bytes_(bytes), at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Pages() { ::munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  unsigned char* at() const { return static_cast<unsigned char*>(at_); }

 private:
  std::size_t bytes_;
  void* at_;
};

// A pool with one array in log mode.
struct Job {
  Job() = default;
  ~Job() { (void)close(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  int close() { return perdure_close(std::exchange(pool, nullptr)); }
  int open(const std::string& path, std::uint64_t bytes, void* buffer = nullptr, unsigned flags = 0,
           unsigned keep = 1) {
    perdure_options options{};
    options.keep = keep;
    if (const int code = perdure_open(path.c_str(), &options, &pool); code != 0) return code;
    if (const int code = add("u", bytes, buffer, flags, &u); code != 0) return code;
    return perdure_restart(pool, &version);
  }
  int add(const std::string& name, std::uint64_t bytes, void* buffer, unsigned flags,
          perdure_array** array) {
    const perdure_array_options options{flags, buffer, 0, nullptr};
    return perdure_array_open(pool, name.c_str(), PERDURE_BYTE, 1, &bytes, PERDURE_LOG, &options,
                              array);
  }
  unsigned char* at() { return static_cast<unsigned char*>(perdure_working(u)); }
  int commit() { return perdure_commit(pool, &version); }
  std::uint64_t committed_bytes() {
    perdure_pool_status status{};
    EXPECT_EQ(perdure_status(pool, &status), 0);
    return status.committed_bytes;
  }
  // What a commit copies: the second one for the other copy.
  std::uint64_t bytes_of_two_commits() {
    const std::uint64_t before = committed_bytes();
    EXPECT_EQ(commit(), 0) << perdure_last_error();
    EXPECT_EQ(commit(), 0) << perdure_last_error();
    return committed_bytes() - before;
  }
  // The newest version takes the place of what the buffer holds.
  int take_back() {
    std::memset(at(), 0xee, 1);
    return perdure_restore(pool, version);
  }

  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  std::uint64_t version = 0;
};

class Tracking : public testing::Test {
 protected:
  void SetUp() override {
    Job job;
    const int code = job.open(directory_ / "tried", page);
    if (code == PERDURE_E_UNSUPPORTED) GTEST_SKIP() << perdure_last_error();
    ASSERT_EQ(code, 0) << perdure_last_error();
  }
  std::string pool() const { return directory_ / "pool"; }

  TemporaryDirectory directory_;
};

struct Way {
  std::string name;
  unsigned flags;
  std::uint64_t bytes;
  unsigned keep;
};
class EachWay : public Tracking, public testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, EachWay,
                         testing::Values(Way{"tracked", 0, 700 * page + 5, 1},
                                         Way{"of_three", 0, 700 * page + 5, 2},
                                         Way{"plain", PERDURE_NO_CHECKSUM, 700 * page + 5, 1},
                                         Way{"marked", PERDURE_MARKS, 700 * page + 5, 2},
                                         Way{"compared", PERDURE_COMPARE, 700 * page + 5, 2},
                                         Way{"of_one_page", 0, 100, 1},
                                         Way{"large", 0, 1500 * page, 1}),
                         [](const auto& tested) { return tested.param.name; });

// Against a plain copy of the buffer; versions are read back, which compares their checksums.
TEST_P(EachWay, random_stores_are_in_the_versions) {
  const Way& way = GetParam();
  std::mt19937_64 random(perdure::test_seed());
  Job job;
  ASSERT_EQ(job.open(pool(), way.bytes, nullptr, way.flags, way.keep), 0) << perdure_last_error();
  std::vector<unsigned char> expected(way.bytes);
  for (int step = 0; step < 200; ++step) {
    const bool all = random() % 8 == 0;
    const std::size_t stores = all ? 1 : random() % 20;
    for (std::size_t i = 0; i < stores; ++i) {
      const std::size_t begin = all ? 0 : random() % way.bytes;
      const std::size_t most = random() % 3 == 0 ? 20 * page : 8;
      const std::size_t count = all ? way.bytes : 1 + random() % std::min(most, way.bytes - begin);
      const auto value = static_cast<unsigned char>(random());
      std::memset(expected.data() + begin, value, count);
      std::memset(job.at() + begin, value, count);
      if (way.flags == PERDURE_MARKS) {
        ASSERT_EQ(perdure_mark(job.u, begin, count), 0);
      }
    }
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    if (random() % 10 != 0) continue;
    if (random() % 2 == 0) {
      ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
    } else {
      ASSERT_EQ(job.close(), 0);
      ASSERT_EQ(job.open(pool(), way.bytes, nullptr, way.flags, way.keep), 0)
          << perdure_last_error();
    }
    ASSERT_EQ(std::memcmp(job.at(), expected.data(), way.bytes), 0) << "step " << step;
  }
}

// Chunks whose pages change each time are left writable for a while, and watched again.
TEST_F(Tracking, what_changes_always_and_then_seldom_is_in_the_versions) {
  constexpr std::size_t bytes = (std::size_t{4} << 20) + page;
  Job job;
  ASSERT_EQ(job.open(pool(), bytes), 0) << perdure_last_error();
  std::vector<unsigned char> expected(bytes);
  for (int step = 1; step < 200; ++step) {
    const std::size_t begin = step < 10 ? 0 : static_cast<std::size_t>(step) * 977 * 13 % bytes;
    const std::size_t count = step < 10 ? bytes : 1;
    std::memset(expected.data() + begin, step, count);
    std::memset(job.at() + begin, step, count);
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    if (step % 9 != 0) continue;
    ASSERT_EQ(job.close(), 0);
    ASSERT_EQ(job.open(pool(), bytes), 0) << perdure_last_error();
    ASSERT_EQ(std::memcmp(job.at(), expected.data(), bytes), 0) << step;
  }
  for (std::size_t at = 0; at < 70 * 7 * page; at += 7 * page) {
    job.at()[at] = expected[at] = 99;
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  }
  ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
  EXPECT_EQ(std::memcmp(job.at(), expected.data(), bytes), 0);
}

// As the two arrays of a double-buffered loop, which is left writable in every second version; then
// the loop skips a version, and stores little.
TEST_F(Tracking, what_changes_in_every_second_version_and_then_not_is_in_the_versions) {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  Job job;
  ASSERT_EQ(job.open(pool(), bytes), 0) << perdure_last_error();
  std::vector<unsigned char> expected(bytes);
  int versions = 0;
  const auto commit = [&](std::size_t changed_bytes) {
    ++versions;
    std::memset(expected.data(), versions, changed_bytes);
    std::memset(job.at(), versions, changed_bytes);
    EXPECT_EQ(job.commit(), 0) << perdure_last_error();
  };
  for (int i = 0; i < 200; ++i) {
    commit(i % 40 == 39 ? page : i % 2 == 0 ? bytes : 0);
    if (i % 7 != 0) continue;
    ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
    ASSERT_EQ(std::memcmp(job.at(), expected.data(), bytes), 0) << "version " << versions;
  }
}

TEST_F(Tracking, a_commit_copies_the_pages_that_changed) {
  if (by_faults()) GTEST_SKIP() << "faults are taken by blocks";
  constexpr std::size_t pages = 2048;
  Job job;
  ASSERT_EQ(job.open(pool(), pages * page), 0) << perdure_last_error();
  std::memset(job.at(), 1, pages * page);
  (void)job.bytes_of_two_commits();
  EXPECT_EQ(job.bytes_of_two_commits(), 0U);
  for (std::size_t i = 0; i < pages; i += 128) job.at()[i * page + 7] = 2;
  EXPECT_EQ(job.bytes_of_two_commits(), 2 * pages / 128 * page);
  EXPECT_EQ(job.bytes_of_two_commits(), 0U);
}

TEST_F(Tracking, pages_of_the_application_on_huge_pages_are_found_one_by_one) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  const Pages memory(4 * huge);
  (void)::madvise(memory.at(), 4 * huge, MADV_HUGEPAGE);
  std::memset(memory.at(), 1, 4 * huge);
  Job job;
  ASSERT_EQ(job.open(pool(), 4 * huge, memory.at()), 0) << perdure_last_error();
  (void)job.bytes_of_two_commits();
  memory.at()[3 * huge + 5] = 2;
  memory.at()[huge - 1] = 3;
  EXPECT_EQ(job.bytes_of_two_commits(), 4 * (by_faults() ? 16 * page : page));
  ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
  EXPECT_EQ(memory.at()[3 * huge + 5], 2);
  EXPECT_EQ(memory.at()[huge - 1], 3);
}

TEST_F(Tracking, memory_that_was_never_touched_begins_as_zeros_and_is_seen) {
  const Pages memory(64 * page);
  Job job;
  ASSERT_EQ(job.open(pool(), 64 * page, memory.at()), 0) << perdure_last_error();
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  memory.at()[9 * page] = 1;
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  ASSERT_EQ(::madvise(memory.at() + 9 * page, page, MADV_DONTNEED), 0);  // zeros again
  memory.at()[10 * page] = 2;
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
  EXPECT_EQ(memory.at()[10 * page], 2);
  if (!by_faults()) {
    EXPECT_EQ(memory.at()[9 * page], 0);
  }
}

TEST_F(Tracking, what_read_and_fread_store_is_in_the_version) {
  if (by_faults()) GTEST_SKIP() << "read() into a protected page fails with EFAULT";
  constexpr std::size_t bytes = 256 * page;
  const std::string file = directory_ / "bytes";
  perdure_test::write_file(file, std::string(bytes, 'x'));
  Job job;
  ASSERT_EQ(job.open(pool(), bytes), 0) << perdure_last_error();
  ASSERT_EQ(job.commit(), 0);
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::read(fd, job.at() + 3, 20 * page), static_cast<ssize_t>(20 * page));
  ASSERT_EQ(::pread(fd, job.at() + 77 * page, 1, 0), 1);
  ::close(fd);
  std::FILE* const stream = std::fopen(file.c_str(), "r");
  ASSERT_EQ(std::fread(job.at() + 100 * page, 1, 100 * page, stream), 100 * page);
  (void)std::fclose(stream);
  ASSERT_EQ(job.commit(), 0);
  const std::vector<unsigned char> expected(job.at(), job.at() + bytes);
  std::memset(job.at(), 9, bytes);
  ASSERT_EQ(perdure_restore(job.pool, job.version), 0) << perdure_last_error();
  EXPECT_EQ(std::memcmp(job.at(), expected.data(), bytes), 0);
  EXPECT_EQ(job.at()[77 * page], 'x');
}

TEST_F(Tracking, more_arrays_than_a_signal_handler_could_watch_are_tracked) {
  if (by_faults()) GTEST_SKIP() << "256 at most";
  Job job;
  ASSERT_EQ(job.open(pool(), page), 0) << perdure_last_error();
  std::vector<perdure_array*> arrays(600);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ASSERT_EQ(job.add("a" + std::to_string(i), 3 * page, nullptr, 0, &arrays[i]), 0)
        << perdure_last_error();
  }
  const auto word = [](perdure_array* array) {
    return static_cast<unsigned char*>(perdure_working(array)) + 2 * page;
  };
  for (int step = 1; step <= 3; ++step) {
    for (std::size_t i = 0; i < arrays.size(); i += 7)
      *word(arrays[i]) = static_cast<unsigned char>(10 + step);
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  }
  for (perdure_array* const array : arrays) *word(array) = 0;
  ASSERT_EQ(perdure_restore(job.pool, job.version), 0) << perdure_last_error();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(*word(arrays[i]), i % 7 == 0 ? 13 : 0);
  }
}

TEST_F(Tracking, a_thread_that_blocks_all_signals_stores_as_any) {
  if (by_faults()) GTEST_SKIP() << "a blocked SIGSEGV ends the process";
  Job job;
  ASSERT_EQ(job.open(pool(), 100 * page), 0) << perdure_last_error();
  ASSERT_EQ(job.commit(), 0);
  std::thread([&job] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (std::size_t i = 0; i < 100; i += 3) job.at()[i * page] = 5;
  }).join();
  ASSERT_EQ(job.commit(), 0);
  ASSERT_EQ(job.take_back(), 0);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(job.at()[i * page], i % 3 == 0 ? 5 : 0);
}

TEST_F(Tracking, the_kernel_needs_no_signal_handler) {
  if (by_faults()) GTEST_SKIP() << "it is one";
  Job job;
  ASSERT_EQ(job.open(pool(), page), 0) << perdure_last_error();
  struct sigaction now{};
  ASSERT_EQ(::sigaction(SIGSEGV, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

// A child that stores, and one that has a pool of its own, with the same addresses.
TEST_F(Tracking, forked_children_neither_suffer_nor_disturb) {
  constexpr std::size_t bytes = 64 * page;
  Job job;
  ASSERT_EQ(job.open(pool(), bytes), 0) << perdure_last_error();
  ASSERT_EQ(job.commit(), 0);
  job.at()[0] = 1;
  const std::string own = directory_ / "own";
  const pid_t child = ::fork();
  if (child == 0) {
    job.at()[1 * page] = 2;  // the child's copy
    int fds[2];
    if (::pipe(fds) != 0 || ::write(fds[1], "x", 1) != 1) ::_exit(1);
    if (!by_faults() && ::read(fds[0], job.at() + 2 * page, 1) != 1) ::_exit(2);
    if (perdure_commit(job.pool, nullptr) != PERDURE_E_STATE) ::_exit(3);
    (void)perdure_close(job.pool);
    Job mine;
    if (mine.open(own, bytes) != 0) ::_exit(4);
    if (mine.commit() != 0) ::_exit(5);
    mine.at()[5 * page] = 7;
    if (mine.commit() != 0 || mine.take_back() != 0 || mine.at()[5 * page] != 7) ::_exit(6);
    ::_exit(0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0) << WEXITSTATUS(ended);
  job.at()[3 * page] = 4;
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  job.at()[4 * page] = 5;
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
  const std::array<int, 5> expected{1, 0, 0, 4, 5};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(job.at()[i * page], expected[i]) << i;
}

TEST_F(Tracking, a_buffer_can_be_tracked_for_one_array_only) {
  const Pages memory(16 * page);
  Job job;
  ASSERT_EQ(job.open(pool(), 8 * page, memory.at()), 0) << perdure_last_error();
  perdure_array* other = nullptr;
  EXPECT_EQ(job.add("v", 8 * page, memory.at() + 4 * page, 0, &other), PERDURE_E_INVALID);
  EXPECT_NE(std::string(perdure_last_error()).find("overlaps"), std::string::npos);
  EXPECT_EQ(job.add("w", 8 * page, memory.at() + 8 * page, 0, &other), 0) << perdure_last_error();
  EXPECT_EQ(job.add("x", 8 * page, memory.at() + 4 * page, PERDURE_COMPARE, &other), 0)
      << perdure_last_error();
}

// Of a file on tmpfs, as another process's mapping would be.
TEST_F(Tracking, stores_through_another_mapping_of_shared_memory_are_in_the_version) {
  constexpr std::size_t bytes = 64 * page;
  const int fd = ::memfd_create("shared", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, bytes), 0);
  const Pages mine(bytes, MAP_SHARED, fd);
  const Pages theirs(bytes, MAP_SHARED, fd);
  ::close(fd);
  Job job;
  ASSERT_EQ(job.open(pool(), bytes, mine.at()), 0) << perdure_last_error();
  for (unsigned char step = 1; step <= 4; ++step) {
    theirs.at()[step * page] = step;
    mine.at()[40 * page] = step;
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  }
  ASSERT_EQ(job.take_back(), 0);
  for (unsigned char step = 1; step <= 4; ++step) EXPECT_EQ(mine.at()[step * page], step);
  EXPECT_EQ(mine.at()[40 * page], 4);
}

TEST_F(Tracking, explicit_huge_pages_hold_an_array) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  void* const at = ::mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (at == MAP_FAILED) GTEST_SKIP() << "this machine has no huge pages to give (vm.nr_hugepages)";
  auto* const bytes = static_cast<unsigned char*>(at);
  {
    Job job;
    ASSERT_EQ(job.open(pool(), 2 * huge, bytes), 0) << perdure_last_error();
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    bytes[huge + 77] = 3;
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
    EXPECT_EQ(bytes[huge + 77], 3);
  }
  ::munmap(at, 2 * huge);
}

// io_uring by its system calls.
class Ring {
 public:
  Ring() : fd_(static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters_))) {
    if (fd_ < 0) return;
    const auto map = [this](std::size_t bytes, off_t offset) {
      return static_cast<unsigned char*>(
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset));
    };
    queue_ = map(parameters_.sq_off.array + parameters_.sq_entries * sizeof(unsigned),
                 IORING_OFF_SQ_RING);
    done_ = map(parameters_.cq_off.cqes + parameters_.cq_entries * sizeof(io_uring_cqe),
                IORING_OFF_CQ_RING);
    entries_ = reinterpret_cast<io_uring_sqe*>(
        map(parameters_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
  }
  ~Ring() {
    if (fd_ >= 0) ::close(fd_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  bool works() const { return fd_ >= 0; }
  bool pin(void* at, std::size_t bytes) const {
    iovec range{at, bytes};
    return ::syscall(SYS_io_uring_register, fd_, IORING_REGISTER_BUFFERS, &range, 1) == 0;
  }
  bool unpin() const {
    return ::syscall(SYS_io_uring_register, fd_, IORING_UNREGISTER_BUFFERS, nullptr, 0) == 0;
  }
  // Reads from the file's beginning to pinned memory.
  int read_fixed(int file, void* to, unsigned bytes) {
    io_uring_sqe& entry = entries_[0];
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = IORING_OP_READ_FIXED;
    entry.fd = file;
    entry.addr = reinterpret_cast<std::uintptr_t>(to);
    entry.len = bytes;
    auto* const tail = reinterpret_cast<unsigned*>(queue_ + parameters_.sq_off.tail);
    const unsigned slot = *tail & (parameters_.sq_entries - 1);
    reinterpret_cast<unsigned*>(queue_ + parameters_.sq_off.array)[slot] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (::syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) != 1) {
      return -1;
    }
    auto* const head = reinterpret_cast<unsigned*>(done_ + parameters_.cq_off.head);
    auto* const all = reinterpret_cast<io_uring_cqe*>(done_ + parameters_.cq_off.cqes);
    const int result = all[*head & (parameters_.cq_entries - 1)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  io_uring_params parameters_{};
  int fd_;
  unsigned char* queue_ = nullptr;
  unsigned char* done_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
};

// The kernel stores to pages that were pinned before the commit, which no page table notices.
TEST_F(Tracking, what_io_uring_stores_to_pinned_pages_is_in_the_version) {
  constexpr std::size_t bytes = 256 * page;
  Ring ring;
  if (!ring.works()) GTEST_SKIP() << "io_uring is forbidden here";
  const std::string file = directory_ / "twos";
  perdure_test::write_file(file, std::string(bytes, '\2'));
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const Pages memory(bytes);
  std::memset(memory.at(), 1, bytes);
  Job job;
  for (const bool pinned_first : {true, false}) {
    if (!pinned_first && by_faults()) break;  // the kernel can't pin protected pages
    if (pinned_first) {
      ASSERT_TRUE(ring.pin(memory.at(), bytes)) << std::strerror(errno);
    }
    ASSERT_EQ(job.open(pool(), bytes, memory.at()), 0) << perdure_last_error();
    if (!pinned_first) {
      ASSERT_TRUE(ring.pin(memory.at(), bytes)) << std::strerror(errno);
    }
    std::memset(memory.at(), 1, bytes);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    ASSERT_EQ(ring.read_fixed(fd, memory.at() + bytes / 4, bytes / 2), int{bytes / 2});
    ASSERT_EQ(memory.at()[bytes / 2], 2);
    ASSERT_TRUE(ring.unpin());  // when the commit looks nothing is pinned any more
    ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    for (int again = 0; again < 3; ++again) {
      std::memset(memory.at(), 9, bytes);
      ASSERT_EQ(perdure_restore(job.pool, job.version), 0) << perdure_last_error();
      EXPECT_EQ(memory.at()[bytes / 2], 2);
      EXPECT_EQ(memory.at()[0], 1);
      memory.at()[bytes - 1] = 7;
      ASSERT_EQ(job.commit(), 0) << perdure_last_error();
    }
    ASSERT_EQ(job.close(), 0);
  }
  ::close(fd);
}

// A faithful driver would pin the pages, and its device store to them. Here the driver only says
// that it is in use, and what the device stores comes through the file under a private mapping.
TEST_F(Tracking, what_a_gpu_stores_to_memory_of_the_host_is_in_the_version) {
  constexpr std::size_t bytes = 64 * page;
  void* const driver = ::dlopen(PERDURE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr) << ::dlerror();
  auto* const initialise = reinterpret_cast<void (*)()>(::dlsym(driver, "fake_cuda_initialise"));
  ASSERT_NE(initialise, nullptr);
  const int fd = ::memfd_create("device", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, bytes), 0);
  const Pages memory(bytes, MAP_PRIVATE, fd);
  Job job;
  ASSERT_EQ(job.open(pool(), bytes, memory.at()), 0) << perdure_last_error();
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  initialise();
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  ASSERT_EQ(::pwrite(fd, "x", 1, 5 * page), 1);
  ASSERT_EQ(memory.at()[5 * page], 'x');
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
  ASSERT_EQ(job.take_back(), 0) << perdure_last_error();
  EXPECT_EQ(memory.at()[5 * page], 'x');
  ::close(fd);
  ::dlclose(driver);
}

class EachMode : public Tracking, public testing::WithParamInterface<perdure_mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EachMode, testing::Values(PERDURE_COPY, PERDURE_LOG),
                         [](const auto& tested) {
                           return tested.param == PERDURE_COPY ? "copy" : "log";
                         });

// As GPU memory is, and memory that was meant to stay as it is.
TEST_P(EachMode, memory_that_cannot_be_read_and_written_is_refused_and_stays_so) {
  const Pages memory(64 * page);
  unsigned char* const at = memory.at();
  ASSERT_EQ(::mprotect(at + 16 * page, 16 * page, PROT_NONE), 0);
  ASSERT_EQ(::mprotect(at + 32 * page, 16 * page, PROT_READ), 0);
  ASSERT_EQ(::munmap(at + 63 * page, page), 0);
  Job job;
  ASSERT_EQ(job.open(pool(), page), 0) << perdure_last_error();
  const auto refused = [&](std::size_t first, std::size_t end) {
    const std::uint64_t bytes = (end - first) * page;
    const perdure_array_options options{0, at + first * page, 0, nullptr};
    perdure_array* array = nullptr;
    const int code =
        perdure_array_open(job.pool, "v", PERDURE_BYTE, 1, &bytes, GetParam(), &options, &array);
    EXPECT_EQ(code, PERDURE_E_INVALID) << first << " to " << end;
    EXPECT_EQ(array, nullptr);
    return std::string(perdure_last_error());
  };
  const auto says = [](const std::string& sentence, const char* what) {
    return sentence.find("array 'v'") != std::string::npos &&
           sentence.find(what) != std::string::npos && sentence.find("GPU") != std::string::npos;
  };
  EXPECT_PRED2(says, refused(16, 32), "byte 0 of its buffer can't be read");
  EXPECT_PRED2(says, refused(0, 20), "byte 65536 of its buffer can't be read");
  EXPECT_PRED2(says, refused(32, 40), "but not written");
  EXPECT_PRED2(says, refused(62, 64), "is not mapped");
  const pid_t child = ::fork();
  if (child == 0) {
    *static_cast<volatile unsigned char*>(at + 33 * page) = 1;
    ::_exit(0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFSIGNALED(ended));
  ASSERT_EQ(job.commit(), 0) << perdure_last_error();
}

}  // namespace
