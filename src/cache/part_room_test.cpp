// SPDX-License-Identifier: BSD-3-Clause
//
// Parts on devices that are full (cache.P16): what does not fit passes through to the cached file,
// and all processes of the node agree what that is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "cache/testing/small_device.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::uint64_t blocks = 64;
using HasRoom = std::function<bool(std::uint64_t block)>;

// A file, and two views of its part, as two processes have them.
class Full : public ExpectedFile {
 public:
  explicit Full(Bytes bytes, std::uint64_t of_block = block_bytes,
                const PartGeometry& geometry = {.blocks = blocks, .journal_entries = 16})
      : ExpectedFile(std::move(bytes)) {
    const Layout layout{LayoutKind::cyclic, 1, of_block, 0};
    (void)new_part(part_path, *backing, 0, layout, expected.size(), geometry);
  }
  void attach(const HasRoom& has_room) {
    parts.push_back(attach_small_part(part_path, *backing, has_room));
    parts.back()->set_teller([this](const std::string& text) { told.push_back(text); });
  }

  std::vector<std::unique_ptr<CachePart>> parts;
  std::vector<std::string> told;
};

Bytes read_from(CachePart& part, std::uint64_t offset, std::uint64_t bytes) {
  Bytes got(bytes);
  must(part.read(offset, got.data(), bytes));
  return got;
}

HasRoom none() {
  return [](std::uint64_t) { return false; };
}
HasRoom all() {
  return [](std::uint64_t) { return true; };
}

class Walk {
 public:
  Walk(std::uint64_t of_block, std::uint64_t room, std::uint64_t seed)
      : random_(seed),
        full_(random_bytes(100000, random_), of_block,
              {.blocks = most_ * 3 / 4 / of_block, .journal_entries = 16}),
        room_(room) {
    // Each of the two may be refused what the other gets, until both have had `room` blocks.
    for (int process = 0; process < 2; ++process) {
      full_.attach([this](std::uint64_t) {
        if (room_ == 0 || random_() % 2 == 0) return false;
        --room_;
        return true;
      });
    }
  }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) one_step();
    (void)must(one().write_back(random_(), true));
    must(full_.backing->set_size(full_.expected.size()));
    EXPECT_TRUE(full_.file() == full_.expected);
    EXPECT_EQ(full_.told.size(), 1U);
  }

 private:
  CachePart& one() { return *full_.parts[random_() % 2]; }

  void one_step() {
    const std::uint64_t offset = random_() % most_;
    const std::uint64_t bytes =
        std::min(most_ - offset, 1 + random_() % (random_() % 4 == 0 ? 60000 : 5000));
    switch (random_() % 12) {
      case 0:
        (void)must(one().write_back(random_(), random_() % 2 == 0));
        break;
      case 1:
        must(one().persist());
        break;
      case 2:
        (void)must(one().fill(offset, bytes));
        break;
      case 3:
        full_.cut(one(), offset);
        break;
      case 4:
      case 5:
      case 6:
        EXPECT_TRUE(read_from(one(), offset, bytes) == full_.wanted(offset, bytes));
        break;
      default:
        full_.write(one(), offset, random_bytes(bytes, random_),
                    static_cast<Acknowledge>(random_() % 3));
    }
    EXPECT_EQ(one().size_bytes(), full_.expected.size());
  }

  static constexpr std::uint64_t most_ = 250000;
  std::mt19937_64 random_;
  Full full_;
  std::uint64_t room_;
};

TEST(PartRoom, random_calls_on_a_device_that_is_full_read_and_write_what_a_plain_array_holds) {
  const std::uint64_t seed = test_seed();
  for (const std::uint64_t of_block : {4096U, 65536U}) {
    for (std::uint64_t room = 0; room < 8 && !HasFailure(); ++room) {
      for (std::uint64_t run = 0; run < 6; ++run) {
        SCOPED_TRACE("blocks of " + std::to_string(of_block) + ", room for " +
                     std::to_string(room) + ", run " + std::to_string(run));
        Walk(of_block, room, seed + run).run(150);
      }
    }
  }
}

TEST(PartRoom, what_passes_through_is_in_the_file_when_the_write_returns) {
  Full full(Bytes(20000, 7));
  full.attach([](std::uint64_t block) { return block == 0; });
  CachePart& part = *full.parts[0];
  full.write(part, 4000, Bytes(300, 1));   // half of it is here
  full.write(part, 9000, Bytes(8000, 2));  // large
  full.write(part, 30000, Bytes(8, 3));    // a word beyond the end
  EXPECT_EQ(full.in_file(4000, 300), [] {
    Bytes both(300, 1);
    std::fill_n(both.begin(), 96, 7);
    return both;
  }());
  EXPECT_EQ(full.in_file(9000, 8000), Bytes(8000, 2));
  EXPECT_EQ(full.in_file(30000, 8), Bytes(8, 3));
  EXPECT_EQ(part.size_bytes(), 30008U);
  EXPECT_EQ(read_from(part, 0, 30008), full.expected);
  // Of blocks 1, 2, 3, 4 and 7; 5 and 6 were not asked for until they were read.
  EXPECT_EQ(part.through_bytes(), 30008U - 4096U);
  EXPECT_EQ(part.passed_bytes(), 204U + 8000U + 8U + 30008U - 4096U);
  ASSERT_EQ(full.told.size(), 1U);
  EXPECT_NE(full.told[0].find("perdure_cache_directory"), std::string::npos) << full.told[0];
  EXPECT_NE(full.told[0].find(full.file_path), std::string::npos) << full.told[0];
}

// Whoever is first decides, also for one that would have room.
TEST(PartRoom, a_block_that_passes_through_does_so_in_all_processes_for_good) {
  Full full(Bytes(20000, 7));
  full.attach(none());
  full.attach(all());
  (void)read_from(*full.parts[0], 5000, 1);
  full.write(*full.parts[1], 5000, Bytes(10, 1));
  EXPECT_EQ(full.in_file(5000, 10), Bytes(10, 1));
  full.write(*full.parts[1], 9000, Bytes(10, 2));  // another block
  EXPECT_EQ(full.in_file(9000, 10), Bytes(10, 7));
  full.write(*full.parts[0], 9005, Bytes(10, 3));
  EXPECT_EQ(full.in_file(9000, 20), Bytes(20, 7));
  EXPECT_EQ(read_from(*full.parts[0], 0, 20000), full.expected);
  (void)must(full.parts[0]->write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

// A device whose file system says what is free, and that counts in vain requests.
class FilledDevice final : public ForwardingDevice {
 public:
  FilledDevice(std::unique_ptr<Device> device, const std::uint64_t& free, int& refused)
      : ForwardingDevice(std::move(device)), free_(free), refused_(refused) {}

  std::uint64_t free_bytes() const override { return free_; }
  Status allocate(std::uint64_t offset, std::size_t count) override {
    if (count <= free_) return ForwardingDevice::allocate(offset, count);
    ++refused_;
    return {Code::no_space, "the test's device is full"};
  }

 private:
  const std::uint64_t& free_;
  int& refused_;
};

TEST(PartRoom, a_device_that_is_full_is_asked_for_room_once) {
  Full full(Bytes(10 * block_bytes, 7));
  std::uint64_t free = std::uint64_t{1} << 30;
  int refused = 0;
  auto device = must(open_file_device(full.part_path, {.shared = true}));
  full.parts.push_back(
      must(CachePart::attach(std::make_unique<FilledDevice>(std::move(device), free, refused))));
  CachePart& part = *full.parts.back();
  part.set_backing(&*full.backing);
  full.write(part, 0, Bytes(2 * block_bytes, 1));
  EXPECT_EQ(part.through_bytes(), 0);
  free = block_bytes - 1;
  full.write(part, 2 * block_bytes, Bytes(3 * block_bytes, 2));
  EXPECT_EQ(part.through_bytes(), 3 * block_bytes);
  EXPECT_EQ(refused, 1);
  free = std::uint64_t{1} << 30;
  full.write(part, 5 * block_bytes, Bytes(3 * block_bytes, 3));
  EXPECT_EQ(part.through_bytes(), 3 * block_bytes);
  EXPECT_EQ(read_from(part, 0, full.expected.size()), full.expected);
  (void)must(part.write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

TEST(PartRoom, what_lies_beyond_the_table_passes_through) {
  Full full(Bytes(blocks * block_bytes, 7));
  full.attach(all());
  CachePart& part = *full.parts[0];
  full.write(part, blocks * block_bytes - 10, Bytes(20, 1));
  full.write(part, 70 * block_bytes, Bytes(5000, 2));
  EXPECT_EQ(full.in_file(blocks * block_bytes, 10), Bytes(10, 1));
  EXPECT_EQ(full.in_file(70 * block_bytes, 5000), Bytes(5000, 2));
  EXPECT_EQ(part.through_bytes(), 6 * block_bytes + 5000);
  EXPECT_EQ(read_from(part, 63 * block_bytes, 8 * block_bytes),
            full.wanted(63 * block_bytes, 8 * block_bytes));
  (void)must(part.write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

// cache.P12: the table's second step has no room; whether anybody gets it is decided once.
TEST(PartRoom, a_table_that_is_full_is_full_for_all) {
  for (const bool refused_first : {true, false}) {
    Full full(Bytes(3000 * 128, 7), 128, {.blocks = 3000, .journal_entries = 16});
    const auto attach = [&](bool whole_table) {
      auto device = must(open_file_device(full.part_path, {.shared = true}));
      const PartHeaderFormat header = must(read_part_header(*device));
      const std::uint64_t step = header.table_offset + table_step * sizeof(BlockFormat);
      full.parts.push_back(must(CachePart::attach(std::make_unique<SmallDevice>(
          std::move(device),
          [=, end = header.block_offset](std::uint64_t offset, std::size_t count) {
            return whole_table || offset >= end || offset + count <= step;
          }))));
      full.parts.back()->set_backing(&*full.backing);
    };
    attach(false);
    attach(true);
    CachePart& first = *full.parts[refused_first ? 0 : 1];
    CachePart& second = *full.parts[refused_first ? 1 : 0];
    full.write(first, 0, Bytes(100, 4));
    full.write(first, 1500 * 128, Bytes(100, 1));
    full.write(second, 1500 * 128 + 50, Bytes(128, 2));
    const std::uint64_t border = (table_step - 24) * 128;
    full.write(first, border, Bytes(100 * 128, 3));  // on both sides
    EXPECT_EQ(full.in_file(1500 * 128 + 50, 128), Bytes(128, refused_first ? 2 : 7));
    EXPECT_EQ(full.in_file(border, 128), Bytes(128, 7));
    for (const auto& part : full.parts) {
      EXPECT_EQ(read_from(*part, 900 * 128, 620 * 128), full.wanted(900 * 128, 620 * 128));
    }
    EXPECT_EQ(first.through_bytes(), refused_first ? (3000 - table_step) * 128 : 0);
    (void)must(second.write_back(0, true));
    EXPECT_EQ(full.file(), full.expected);
  }
}

TEST(PartRoom, a_table_that_is_full_is_asked_for_room_once) {
  Full full(Bytes(3000 * 128, 7), 128, {.blocks = 3000, .journal_entries = 16});
  auto device = must(open_file_device(full.part_path, {.shared = true}));
  const std::uint64_t table = must(read_part_header(*device)).table_offset;
  int refused = 0;
  full.parts.push_back(must(CachePart::attach(std::make_unique<SmallDevice>(
      std::move(device), [&](std::uint64_t offset, std::size_t count) {
        if (offset < table || offset + count <= table + table_step * sizeof(BlockFormat)) {
          return true;
        }
        ++refused;
        return false;
      }))));
  full.parts.back()->set_backing(&*full.backing);
  CachePart& part = *full.parts.back();
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(read_from(part, 1500 * 128, 5000), full.wanted(1500 * 128, 5000));
    full.write(part, 2000 * 128, Bytes(5000, static_cast<unsigned char>(time)));
  }
  EXPECT_EQ(refused, 1);
}

// The descriptor of this process that has the file open takes what is written and can't be
// synchronised.
class NothingDurable {
 public:
  explicit NothingDurable(const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path(), gone) != path) continue;
      fd_ = std::stoi(entry.path().filename().string());
    }
    was_ = FileHandle(::dup(fd_));
    const FileHandle null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_GE(::dup2(null.fd(), fd_), 0);
  }
  ~NothingDurable() { EXPECT_GE(::dup2(was_.fd(), fd_), 0); }
  NothingDurable(const NothingDurable&) = delete;
  NothingDurable& operator=(const NothingDurable&) = delete;

 private:
  int fd_ = -1;
  FileHandle was_;
};

TEST(PartRoom, what_is_to_be_durable_waits_for_the_file_where_it_passes_through) {
  Full full(Bytes(20000, 7));
  full.attach([](std::uint64_t block) { return block != 1; });
  CachePart& part = *full.parts[0];
  (void)read_from(part, 0, 20000);
  const NothingDurable device(full.file_path);
  const Bytes some(100, 1);
  EXPECT_TRUE(part.write(5000, some.data(), 100, Acknowledge::sync).ok());
  EXPECT_TRUE(part.write(9000, some.data(), 100, Acknowledge::durable).ok());
  EXPECT_EQ(part.write(5000, some.data(), 100, Acknowledge::durable).code(), Code::io_error);
  EXPECT_EQ(part.persist().code(), Code::io_error);
  EXPECT_TRUE(part.write_back(0, false).ok());
  EXPECT_EQ(part.write_back(0, true).status().code(), Code::io_error);
}

TEST(PartRoom, a_sync_waits_for_the_file_though_nothing_is_dirty) {
  Full full(Bytes(20000, 7));
  full.attach(none());
  const NothingDurable device(full.file_path);
  EXPECT_TRUE(full.parts[0]->write_back(0, true).ok());
  EXPECT_TRUE(full.parts[0]->write(5000, "x", 1, Acknowledge::sync).ok());
  EXPECT_EQ(full.parts[0]->write_back(0, true).status().code(), Code::io_error);
}

TEST(PartRoom, what_is_cut_off_may_have_room_again_and_the_rest_stays_in_the_file) {
  Full full(Bytes(20000, 7));
  bool room = false;
  full.attach([&](std::uint64_t) { return room; });
  CachePart& part = *full.parts[0];
  full.write(part, 0, Bytes(20000, 1));
  const std::uint64_t before = part.device().allocated_bytes();
  const auto set_size = [&](std::uint64_t bytes) {
    must(part.set_size(bytes));
    must(full.backing->set_size(bytes));
    full.expected.resize(bytes);
  };
  set_size(6000);
  EXPECT_EQ(part.device().allocated_bytes(), before);
  room = true;
  set_size(20000);
  EXPECT_EQ(read_from(part, 0, 20000), full.expected);
  full.write(part, 5000, Bytes(10, 2));
  EXPECT_EQ(full.in_file(5000, 10), Bytes(10, 2));
  full.write(part, 10000, Bytes(10, 3));
  EXPECT_EQ(full.in_file(10000, 10), Bytes(10, 0));
  (void)must(part.write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

// Its range of each 400 bytes, with room for every other block that it asks for.
[[noreturn]] void write_in_a_process(const Full& full, unsigned process) {
  const auto own = must(BackingFile::open(full.file_path, BackingFile::Access::read_write));
  const auto part = attach_small_part(full.part_path, own, random_room(process));
  for (unsigned i = 0; i < 2000; ++i) {
    const Bytes mine(100, static_cast<unsigned char>(i / 500 + process * 10));
    must(part->write((i % 500) * 400 + process * 100, mine.data(), 100, Acknowledge::sync));
    if (i % 300 == process) (void)must(part->write_back(i, true));
  }
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(PartRoom, processes_that_find_no_room_and_others_that_do_write_to_one_file) {
  Full full(Bytes(200000, 7));
  expect_success(in_processes(4, [&](unsigned process) { write_in_a_process(full, process); }));
  full.attach(all());
  (void)must(full.parts[0]->write_back(0, true));
  for (unsigned i = 0; i < 2000; ++i) {
    std::fill_n(full.expected.begin() + i * 100, 100, static_cast<unsigned char>(3 + i % 4 * 10));
  }
  EXPECT_EQ(full.file(), full.expected);
  const std::uint64_t through = full.parts[0]->through_bytes();
  EXPECT_GT(through, 0U);
  EXPECT_LT(through, 200000U);
}

// A part on a device, of a process that has not joined.
std::unique_ptr<CachePart> attach_on(const Full& full, std::unique_ptr<Device> device) {
  auto part = must(CachePart::attach(std::move(device)));
  part->set_backing(&*full.backing);
  return part;
}
std::unique_ptr<CachePart> attach_on(const Full& full, SmallDevice::Grants grants) {
  auto device = must(open_file_device(full.part_path, {.shared = true}));
  return attach_on(full, std::make_unique<SmallDevice>(std::move(device), std::move(grants)));
}

// Sees whether a durable write is intended in an entry of the journal that holds another one.
class EntryWatch final : public ForwardingDevice {
 public:
  EntryWatch(const std::string& part_file, const std::atomic<bool>& is_full)
      : ForwardingDevice(must(open_file_device(part_file, {.shared = true}))),
        begin_(must(read_part_header(*this)).journal_offset),
        is_full_(is_full) {}
  std::atomic<int> shared{0};

  Status allocate(std::uint64_t offset, std::size_t count) override {
    if (is_full_) return {Code::no_space, "the test's device is full"};
    return ForwardingDevice::allocate(offset, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    ForwardingDevice::flush(offset, count);
    const std::uint64_t entry = (offset - begin_) / sizeof(JournalFormat);
    if (offset < begin_ || entry >= entries_) return;
    const bool is_intended = count > offsetof(JournalFormat, bytes);
    if (is_held_.at(entry).exchange(is_intended) && is_intended) ++shared;
    std::this_thread::yield();
  }

 private:
  static constexpr std::size_t entries_ = 16;
  std::uint64_t begin_;
  const std::atomic<bool>& is_full_;
  std::array<std::atomic<bool>, entries_> is_held_{};
};

// cache.P3.
TEST(PartRoom, threads_for_whose_journal_there_is_no_room_take_turns_with_that_of_the_process) {
  Full full(Bytes(40000, 7));
  std::atomic<bool> is_full = false;
  auto watched = std::make_unique<EntryWatch>(full.part_path, is_full);
  EntryWatch& device = *watched;
  const auto part = attach_on(full, std::move(watched));
  const auto other = attach_on(full, std::make_unique<EntryWatch>(full.part_path, is_full));
  for (CachePart* each : {part.get(), other.get()}) {
    must(each->join_owners(must(open_part_lock(full.part_path))));
  }
  (void)must(part->fill(0, 1));  // the first block; the others pass through
  is_full = true;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other->write(0, "x", 1, Acknowledge::sync).ok());
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned i = 0; i < 400; ++i) {
        const Bytes mine(25, static_cast<unsigned char>(thread + i % 4 * 10));
        const auto when = i % 2 == 0 ? Acknowledge::durable : Acknowledge::sync;
        ASSERT_TRUE(part->write(i * 100 + thread * 25, mine.data(), 25, when).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.shared, 0);
  for (unsigned i = 0; i < 1600; ++i) {
    std::fill_n(full.expected.begin() + i * 25, 25,
                static_cast<unsigned char>(i % 4 + i / 4 % 4 * 10));
  }
  EXPECT_EQ(read_from(*part, 0, 40000), full.expected);
  (void)must(part->write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

// As a block does on a file system that takes all that is left before it refuses.
TEST(PartRoom, a_write_waits_for_a_journal_whose_room_is_taken_for_a_moment) {
  Full full(Bytes(20000, 7));
  full.attach(all());
  full.write(*full.parts[0], 10, Bytes(10, 1));  // has the entry that every part has room for
  int refusals = 5;
  const auto other = attach_on(full, [&](std::uint64_t, std::size_t) { return --refusals < 0; });
  EXPECT_TRUE(other->write(30, "xyz", 3, Acknowledge::sync).ok());
  EXPECT_LT(refusals, 0);
  EXPECT_EQ(read_from(*full.parts[0], 30, 3), (Bytes{'x', 'y', 'z'}));
}

TEST(PartRoom, a_process_without_a_journal_says_so) {
  Full full(Bytes(20000, 7));
  full.attach(all());
  full.write(*full.parts[0], 10, Bytes(10, 1));
  const auto other = attach_on(full, [](std::uint64_t, std::size_t) { return false; });
  const Status refused = other->write(30, "x", 1, Acknowledge::sync);
  EXPECT_EQ(refused.code(), Code::no_space);
  EXPECT_NE(refused.message().find("no room for another's journal"), std::string::npos);
  EXPECT_EQ(read_from(*full.parts[0], 0, 20000), full.expected);
}

// cache.P8.
TEST(PartRoom, of_a_file_that_is_committed_with_a_pool_nothing_passes_through) {
  Full full(Bytes(20000, 7));
  PartIdentity identity;
  identity.path = full.file_path;
  identity.layout.block_bytes = block_bytes;
  identity.pool = "/the/pool";
  identity.pool_job[0] = 1;
  {
    const auto device = must(open_file_device(full.part_path, {.shared = true}));
    must(CachePart::format(*device, identity, {.blocks = 6, .journal_entries = 16}, 20000));
  }
  full.attach([](std::uint64_t block) { return block < 3; });
  CachePart& part = *full.parts[0];
  FileDeviceOptions options;
  options.create = options.shared = true;
  options.sparse_bytes = part.undo_geometry().file_bytes();
  bool room = true;
  part.set_undo_log(std::make_unique<UndoLog>(
      std::make_unique<SmallDevice>(must(open_file_device(full.directory / "undo", options)),
                                    [&](std::uint64_t, std::size_t) { return room; }),
      part.undo_geometry()));
  must(part.set_base_version(1, 20000).status());
  full.write(part, 0, Bytes(5000, 1));
  const auto refused = [&](std::uint64_t offset) {
    const Bytes some(100, 2);
    const Status status = part.write(offset, some.data(), some.size(), Acknowledge::sync);
    EXPECT_EQ(status.code(), Code::no_space);
    EXPECT_TRUE(says(status, "the pool /the/pool")) << status.message();
    EXPECT_TRUE(says(status, "could not be undone")) << status.message();
  };
  refused(3 * block_bytes);
  refused(7 * block_bytes);  // beyond its blocks
  room = false;
  refused(2 * block_bytes);  // no undo entry
  EXPECT_EQ(full.file(), Bytes(20000, 7));
  EXPECT_EQ(part.through_bytes(), 0U);
  EXPECT_EQ(full.told.size(), 0U);
  (void)must(part.write_back(0, true));
  EXPECT_EQ(full.file(), full.expected);
}

// Nothing of it is here: recovery to another file needs the cached one.
TEST(PartRoom, recovery_leaves_what_passed_through_as_the_file_has_it) {
  Full full(Bytes(20000, 7));
  full.attach([](std::uint64_t block) { return block < 2; });
  full.write(*full.parts[0], 0, Bytes(20000, 1), Acknowledge::durable);
  full.write(*full.parts[0], 12000, Bytes(100, 2));
  EXPECT_EQ(full.parts[0]->unsaved_bytes(true), 8192U);
  EXPECT_FALSE(must(full.parts[0]->write_present()));
  for (const bool same_boot : {true, false}) {
    const auto part = attach_part(full.part_path, *full.backing);
    EXPECT_EQ(must(part->recover(same_boot)).bytes, 8192U);
    EXPECT_EQ(full.file(), full.expected);
  }
}

TEST(PartRoom, a_part_without_the_cached_file_lacks_what_grew_through_it) {
  Full full(Bytes(0));
  full.attach(none());
  EXPECT_TRUE(must(full.parts[0]->write_present()));
  full.write(*full.parts[0], 100, Bytes(100, 1));
  EXPECT_FALSE(must(full.parts[0]->write_present()));
}

}  // namespace
}  // namespace perdure
