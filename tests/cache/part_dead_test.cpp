// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that die in the middle of what they have alone, at a chosen point: those that share the
// part go on, and nothing is torn or lost (cache_part.hpp, cache.P10 and cache.P11); a part of
// which all are dying is waited for and recovered.
// ctest: TIMEOUT 60
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "cache/part_directory.hpp"
#include "cache/testing/scratch_part.hpp"
#include "pmem/forwarding_device.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 65536;
constexpr std::uint64_t grain_bytes = block_bytes / grains_per_block;

// A device that calls back where its process is to die.
class HookDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  bool full = false;
  std::function<void()> on_allocate;
  std::function<void()> on_discard;
  std::function<void(int)> on_fence;  // with the number of the fence, from 1

  Status allocate(std::uint64_t offset, std::size_t count) override {
    const Status allocated =
        full ? Status(Code::no_space, "full") : ForwardingDevice::allocate(offset, count);
    if (on_allocate) on_allocate();
    return allocated;
  }
  Status discard(std::uint64_t offset, std::size_t count) override {
    if (on_discard) on_discard();
    return ForwardingDevice::discard(offset, count);
  }
  Status fence() override {
    const Status fenced = ForwardingDevice::fence();
    if (on_fence) on_fence(++fences_);
    return fenced;
  }

 private:
  int fences_ = 0;
};

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

// In a pwrite to there.
void die_beyond(std::uint64_t bytes) {
  const rlimit most{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &most);
  ::signal(SIGXFSZ, SIG_DFL);
}

// A file of random bytes, a part of it that this process has open, and children that die.
class Shared {
 public:
  explicit Shared(bool with_pool = false) : in_group_(with_pool) {
    write_file(file(), expected);
    backing.emplace(must(BackingFile::open(file(), BackingFile::Access::read_write)));
    open.emplace(must(make()));
  }

  std::string file() const { return scratch / "file"; }
  Result<OpenPart> make() const {
    PartRequest request;
    request.directory = scratch / "parts";
    request.identity.path = file();
    request.identity.file_device = backing->device();
    request.identity.file_inode = backing->inode();
    request.identity.layout = make_layout(LayoutKind::cyclic, 1, block_bytes, expected.size());
    request.file_bytes = expected.size();
    if (in_group_) {
      request.identity.pool_job[0] = 1;
      request.restored = PoolVersion{{1, 0}, 5, 0, 0};
    }
    PERDURE_TRY(recover_leftover_part(request.directory, file(), *backing, request.restored));
    return make_part(request, *backing);
  }

  // Runs `deed` in a child that has joined the part on a hooked device, and sees it die.
  void die_in(const std::function<void(CachePart&, HookDevice&)>& deed) {
    const pid_t child = ::fork();
    if (child == 0) join_and(deed);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it did not die where it should";
  }
  [[noreturn]] void join_and(const std::function<void(CachePart&, HookDevice&)>& deed) const {
    const std::string path = part_file_path(scratch / "parts", file());
    auto hooked = std::make_unique<HookDevice>(must(open_file_device(path, {.shared = true})));
    HookDevice& device = *hooked;
    auto part = must(CachePart::attach(std::move(hooked)));
    const auto own = must(BackingFile::open(file(), BackingFile::Access::read_write));
    part->set_backing(&own);
    if (in_group_) {
      auto undo = must(open_file_device(path + ".undo", {.shared = true}));
      auto hooked_undo = std::make_unique<HookDevice>(std::move(undo));
      hooked_undo->on_fence = [](int) { die(); };
      part->set_undo_log(std::make_unique<UndoLog>(std::move(hooked_undo), part->undo_geometry()));
    }
    const int lock = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (::flock(lock, LOCK_SH | LOCK_NB) != 0) ::_exit(2);
    must(part->join_owners(FileHandle(lock)));
    deed(*part, device);
    ::_exit(0);
  }

  void write(std::uint64_t offset, const Bytes& bytes, Acknowledge when = Acknowledge::sync) {
    must(open->part->write(offset, bytes.data(), bytes.size(), when));
    expect(offset, bytes);
  }
  void expect(std::uint64_t offset, const Bytes& bytes) {
    if (expected.size() < offset + bytes.size()) expected.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  Bytes read(std::uint64_t offset, std::uint64_t bytes) {
    Bytes got(bytes);
    must(open->part->read(offset, got.data(), bytes));
    return got;
  }
  void close() {
    (void)must(open->part->write_back(0, true));
    must(leave_part(std::move(*open), false));
    open.reset();
    EXPECT_TRUE(read_file(file()) == expected);
    EXPECT_FALSE(std::filesystem::exists(part_file_path(scratch / "parts", file())));
  }

  std::mt19937_64 random{7};
  TemporaryDirectory scratch;
  Bytes expected = random_bytes(3 * block_bytes + 1234, random);
  std::optional<BackingFile> backing;
  std::optional<OpenPart> open;

 private:
  bool in_group_;
};

// So that the next block's space is the first that is asked for, not the table's.
void fill_first_block(CachePart& part) {
  std::byte byte{};
  must(part.read(0, &byte, 1));
}

std::byte* block_of(CachePart& part, std::uint64_t block) {
  return part.device().base() + part.header().block_offset + block * block_bytes;
}

TEST(PartDead, a_block_that_a_dead_process_was_filling_is_filled_by_another) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    device.on_allocate = [] { die(); };
    std::byte byte{};
    (void)part.read(block_bytes, &byte, 1);
  });
  EXPECT_EQ(shared.read(block_bytes, 100), Bytes(shared.expected.begin() + block_bytes,
                                                 shared.expected.begin() + block_bytes + 100));
  shared.close();
}

TEST(PartDead, a_block_that_a_dead_process_was_writing_whole_holds_nothing_of_it) {
  Shared shared;
  const std::uint64_t end = 4 * block_bytes;  // the file's end
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    device.on_allocate = [&] {
      std::memset(block_of(part, 4), 9, 5000);
      die();
    };
    (void)part.write(4 * block_bytes, Bytes(9000, 9).data(), 9000, Acknowledge::sync);
  });
  shared.write(end + 100, Bytes(10, 3));
  EXPECT_EQ(shared.read(end, 100), Bytes(100, 0));
  EXPECT_EQ(shared.read(end + 110, 5000), Bytes(5000, 0));
  shared.close();
}

// cache.P16.
TEST(PartDead, a_block_that_passed_through_for_a_dead_process_does_so_for_the_others) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    device.full = true;
    must(part.write(block_bytes + 5, Bytes(3000, 4).data(), 3000, Acknowledge::sync));
    die();
  });
  shared.expect(block_bytes + 5, Bytes(3000, 4));
  EXPECT_EQ(shared.read(block_bytes + 5, 3000), Bytes(3000, 4));
  shared.write(block_bytes + 1000, Bytes(10, 5));
  EXPECT_EQ(read_file(shared.file())[block_bytes + 1009], 5);
  shared.close();
}

TEST(PartDead, a_block_for_which_a_dead_process_found_no_room_is_absent_until_it_says_so) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    device.full = true;
    device.on_allocate = [] { die(); };
    (void)part.write(block_bytes, Bytes(block_bytes, 9).data(), block_bytes, Acknowledge::sync);
  });
  shared.write(block_bytes + 100, Bytes(10, 3));
  EXPECT_NE(read_file(shared.file())[block_bytes + 100], 3);
  shared.close();
}

// cache.P3: by whoever cleans up, in the file.
TEST(PartDead, a_small_write_that_passed_through_halfway_is_finished_by_another) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    device.full = true;
    std::byte byte{};
    must(part.read(2 * block_bytes - 50, &byte, 1));
    must(part.read(2 * block_bytes, &byte, 1));
    die_beyond(2 * block_bytes + 20);
    (void)part.write(2 * block_bytes - 50, Bytes(100, 8).data(), 100, Acknowledge::sync);
  });
  EXPECT_EQ(read_file(shared.file())[2 * block_bytes + 19], 8);
  EXPECT_EQ(read_file(shared.file())[2 * block_bytes + 20], shared.expected[2 * block_bytes + 20]);
  OpenPart second = must(shared.make());  // joins, and cleans up
  shared.expect(2 * block_bytes - 50, Bytes(100, 8));
  EXPECT_EQ(shared.read(2 * block_bytes - 100, 200),
            Bytes(shared.expected.begin() + 2 * block_bytes - 100,
                  shared.expected.begin() + 2 * block_bytes + 100));
  must(leave_part(std::move(second), false));
  shared.close();
}

// cache.P17. Makes block 1 worth the room of block 0, which a child has written to. `at` says where
// it dies, from the last allocation that is refused on.
void die_evicting(CachePart& part, HookDevice& device, Acknowledge when,
                  const std::function<void(HookDevice&)>& at) {
  fill_first_block(part);
  part.set_evicting({4, 4});
  must(part.write(100, Bytes(9000, 6).data(), 9000, when));
  device.full = true;
  std::byte byte{};
  must(part.read(block_bytes, &byte, 1));
  at(device);
  for (int times = 0; times < 20; ++times) must(part.read(block_bytes, &byte, 1));
}

void expect_whole_after(Acknowledge when, const std::function<void(HookDevice&)>& at) {
  Shared shared;
  shared.die_in([&](CachePart& part, HookDevice& device) { die_evicting(part, device, when, at); });
  shared.expect(100, Bytes(9000, 6));
  EXPECT_EQ(shared.read(0, 3 * block_bytes),
            Bytes(shared.expected.begin(), shared.expected.begin() + 3 * block_bytes));
  shared.write(50, Bytes(10, 1));
  shared.write(block_bytes + 50, Bytes(10, 2));
  EXPECT_EQ(shared.read(0, 2 * block_bytes),
            Bytes(shared.expected.begin(), shared.expected.begin() + 2 * block_bytes));
  shared.close();
}

TEST(PartDead, a_block_that_a_dead_process_was_writing_back_to_evict_it_is_whole) {
  expect_whole_after(Acknowledge::sync, [](HookDevice&) { die_beyond(100); });
  expect_whole_after(Acknowledge::sync, [](HookDevice&) { die_beyond(5000); });
}

// The first discard is that of the block that found no room, the second the evicted one's.
TEST(PartDead, a_block_that_a_dead_process_had_evicted_passes_through) {
  for (const int last : {1, 2}) {
    for (const auto when : {Acknowledge::sync, Acknowledge::durable}) {
      expect_whole_after(when, [=](HookDevice& device) {
        device.on_discard = [left = last]() mutable {
          if (--left == 0) die();
        };
      });
    }
  }
}

TEST(PartDead, a_block_that_was_durable_in_the_part_of_a_dead_process_alone_is_whole) {
  for (const int fence : {1, 2}) {
    expect_whole_after(Acknowledge::durable, [=](HookDevice& device) {
      device.on_fence = [fence, seen = 0](int) mutable {
        if (++seen == fence) die();
      };
    });
  }
}

TEST(PartDead, a_block_that_a_dead_process_brought_in_holds_nothing_of_it) {
  expect_whole_after(Acknowledge::sync, [](HookDevice& device) {
    device.on_discard = [&device] { device.full = false; };
    device.on_allocate = [&device] {
      if (device.full) return;
      std::byte* block = device.base() + must(read_part_header(device)).block_offset + block_bytes;
      std::memset(block, 9, 5000);
      die();
    };
  });
}

// A mark of the dead: whoever wants to evict finds out.
TEST(PartDead, a_block_that_a_dead_process_was_using_can_be_evicted) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice&) {
    fill_first_block(part);
    const CachePart::Stay stay(part);
    die();
  });
  shared.die_in([](CachePart& part, HookDevice& device) {
    fill_first_block(part);
    part.set_evicting({4, 4});
    device.full = true;
    device.on_discard = [&] { device.full = part.evicted_bytes() == 0; };
    std::byte byte{};
    for (int times = 0; times < 100; ++times) must(part.read(block_bytes, &byte, 1));
    if (part.evicted_bytes() != 0) die();
  });
  shared.close();
}

TEST(PartDead, what_a_dead_process_was_writing_back_is_written_back_by_another) {
  Shared shared;
  shared.write(10, Bytes(20000, 5));
  shared.write(block_bytes + 10, Bytes(100, 6));
  shared.die_in([](CachePart& part, HookDevice&) {
    die_beyond(100);
    (void)part.write_back(0, true);
  });
  shared.close();
}

TEST(PartDead, shared_pointers_of_a_dead_process_are_free_again) {
  Shared shared;
  const int own = shared.open->part->take_pointer();
  shared.open->part->pointers().at(own).store(17);
  shared.die_in([](CachePart& part, HookDevice&) {
    while (part.take_pointer() >= 0) {
    }
    die();
  });
  for (std::size_t left = shared_pointers_max - 1; left > 0; --left) {
    const int slot = shared.open->part->take_pointer();
    ASSERT_GE(slot, 0);
    EXPECT_NE(slot, own);
    EXPECT_EQ(shared.open->part->pointers().at(slot).load(), 0U);
  }
  EXPECT_EQ(shared.open->part->take_pointer(), -1);
  EXPECT_EQ(shared.open->part->pointers().at(own).load(), 17U);
  shared.close();
}

// Half of a small write is in the block, in a grain that another dirties.
void die_amid_small_write(CachePart& part, HookDevice& device, const Bytes& bytes) {
  device.on_fence = [&](int fence) {
    if (fence != 2) return;  // after the note that something is durable here
    std::memcpy(block_of(part, 0) + 1000, bytes.data(), bytes.size() / 2);
    die();
  };
  (void)part.write(1000, bytes.data(), bytes.size(), Acknowledge::durable);
}

TEST(PartDead, a_small_write_of_a_dead_process_is_whole_when_the_last_one_leaves) {
  Shared shared;
  (void)shared.read(0, 1);
  const Bytes torn(300, 4);
  shared.die_in(
      [&](CachePart& part, HookDevice& device) { die_amid_small_write(part, device, torn); });
  shared.write(1000 / grain_bytes * grain_bytes, Bytes(1, 8));
  shared.expect(1000, torn);
  shared.close();
}

TEST(PartDead, a_small_write_of_a_dead_process_is_not_done_over_what_was_written_since_it_joined) {
  Shared shared;
  (void)shared.read(0, 1);
  const Bytes torn(300, 4);
  shared.die_in(
      [&](CachePart& part, HookDevice& device) { die_amid_small_write(part, device, torn); });
  OpenPart second = must(shared.make());  // joins, and cleans up
  EXPECT_TRUE(second.joined);
  shared.expect(1000, torn);
  EXPECT_EQ(shared.read(1000, 300), torn);
  shared.write(1100, Bytes(50, 1));
  must(leave_part(std::move(second), false));
  shared.close();
}

TEST(PartDead, an_acknowledged_write_that_comes_after_the_others_wrote_back_is_not_lost) {
  Shared shared;
  (void)must(shared.open->part->write_back(0, true));
  const Bytes late(5000, 2);
  shared.die_in([&](CachePart& part, HookDevice&) {
    must(part.write(70000, late.data(), late.size(), Acknowledge::sync));
    die();
  });
  shared.expect(70000, late);
  must(leave_part(std::move(*shared.open), false));
  EXPECT_TRUE(read_file(shared.file()) == shared.expected);
}

TEST(PartDead, who_only_reads_leaves_what_the_dead_wrote_to_recovery) {
  Shared shared;
  const Bytes late(5000, 2);
  shared.die_in([&](CachePart& part, HookDevice&) {
    must(part.write(70000, late.data(), late.size(), Acknowledge::sync));
    die();
  });
  const auto reading = must(BackingFile::open(shared.file(), BackingFile::Access::read));
  shared.open->part->set_backing(&reading);
  must(leave_part(std::move(*shared.open), false));
  shared.open.emplace(must(shared.make()));
  shared.expect(70000, late);
  EXPECT_TRUE(read_file(shared.file()) == shared.expected);
  shared.close();
}

TEST(PartDead, journal_entries_of_dead_processes_are_used_again) {
  Shared shared;
  (void)shared.read(0, 1);
  for (int times = 0; times < 3; ++times) {
    shared.die_in([](CachePart& part, HookDevice&) {
      std::vector<std::thread> threads;
      std::atomic<int> written{0};
      for (int i = 0; i < 100; ++i) {
        threads.emplace_back([&] {
          must(part.write(10, "abc", 3, Acknowledge::sync));
          if (++written == 100) die();
          while (true) ::pause();
        });
      }
      while (true) ::pause();
    });
  }
  shared.write(10, {'a', 'b', 'c'});
  shared.write(20, Bytes(50, 1));
  shared.close();
}

TEST(PartDead, the_lock_of_a_dead_process_is_free) {
  Shared shared;
  shared.die_in([](CachePart& part, HookDevice&) {
    if (part.try_lock(0)) die();
  });
  while (!shared.open->part->try_lock(0)) ::usleep(100);
  EXPECT_FALSE(shared.open->part->try_lock(3));
  EXPECT_FALSE(shared.open->part->unlock(3));
  EXPECT_TRUE(shared.open->part->unlock(0));
  shared.close();
}

TEST(PartDead, a_base_version_that_a_dead_process_was_setting_is_set_by_another) {
  Shared shared(true);
  shared.die_in([](CachePart& part, HookDevice& device) {
    device.on_fence = [](int) { die(); };
    (void)part.set_base_version(6, 0);
  });
  must(shared.open->part->set_base_version(6, 0).status());
  shared.write(0, Bytes(100, 1));
  shared.close();
}

TEST(PartDead, a_grain_that_a_dead_process_was_keeping_is_kept_by_another) {
  Shared shared(true);
  const Bytes before = shared.read(0, 100);
  must(shared.open->part->set_base_version(6, 0).status());
  shared.die_in([](CachePart& part, HookDevice&) {
    (void)part.write(0, "abc", 3, Acknowledge::sync);  // dies at the undo log's fence
  });
  shared.write(0, Bytes(100, 1));
  must(shared.open->part->roll_back({{1, 0}, 6, 0, 0}));
  EXPECT_EQ(shared.read(0, 100), before);
  shared.expect(0, before);
  shared.close();
}

// The kernel stops a traced process that was killed as it begins to end: its files are still open.
class HeldInDeath {
 public:
  explicit HeldInDeath(const std::function<void()>& deed) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      deed();
      die();
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACEEXIT);
    ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
    ::waitpid(pid_, &status, 0);
    EXPECT_EQ(status >> 8, SIGTRAP | (PTRACE_EVENT_EXIT << 8));
  }
  ~HeldInDeath() { let_go(); }
  void let_go() {
    if (pid_ == 0) return;
    ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST(PartDead, a_part_whose_only_process_is_dying_is_waited_for_and_recovered) {
  Shared shared;
  shared.write(200, Bytes(10, 1));
  must(leave_part(std::move(*shared.open), true));
  shared.open.reset();
  const Bytes torn(300, 4);
  HeldInDeath victim([&] {
    shared.join_and(
        [&](CachePart& part, HookDevice& device) { die_amid_small_write(part, device, torn); });
  });
  const auto found = must(list_parts(shared.scratch / "parts"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].in_use);
  shared.expect(1000, torn);
  std::atomic<bool> done{false};
  std::thread opening([&] {
    shared.open.emplace(must(shared.make()));
    done = true;
  });
  ::usleep(100000);
  EXPECT_FALSE(done);  // it can't be right before the process has ended
  victim.let_go();
  opening.join();
  EXPECT_FALSE(shared.open->joined);
  EXPECT_TRUE(read_file(shared.file()) == shared.expected);
  shared.close();
}

TEST(PartDead, a_part_that_a_living_process_shares_with_a_dying_one_is_joined_at_once) {
  Shared shared;
  HeldInDeath victim([&] {
    shared.join_and([&](CachePart& part, HookDevice&) {
      must(part.write(70000, Bytes(5000, 2).data(), 5000, Acknowledge::sync));
      die();
    });
  });
  OpenPart second = must(shared.make());
  EXPECT_TRUE(second.joined);
  must(leave_part(std::move(second), false));
  victim.let_go();
  shared.expect(70000, Bytes(5000, 2));
  shared.close();
}

}  // namespace
}  // namespace perdure
