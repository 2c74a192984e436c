// SPDX-License-Identifier: BSD-3-Clause
//
// Cache parts: random calls against a plain array of bytes, what is written back and what is not,
// and threads and processes that write while others write back.
#include "cache/cache_part.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/checksum.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

struct Shape {
  std::uint64_t block_bytes;
  std::uint32_t node;
  std::uint32_t nodes;
  LayoutKind kind;
  std::uint64_t file_bytes;
};

// One part of a file, the file, and what it should hold.
class Cached : public ExpectedFile {
 public:
  Cached(const Shape& shape, Bytes bytes,
         const PartGeometry& geometry = {.blocks = 64, .journal_entries = 16})
      : ExpectedFile(std::move(bytes)) {
    const Layout layout = make_layout(shape.kind, shape.nodes, shape.block_bytes, shape.file_bytes);
    part = new_part(part_path, *backing, shape.node, layout, expected.size(), geometry);
  }
  explicit Cached(Bytes bytes, std::uint64_t block_bytes = 4096)
      : Cached({block_bytes, 0, 1, LayoutKind::cyclic, bytes.size()}, bytes) {}

  void write(std::uint64_t offset, const Bytes& bytes, Acknowledge when = Acknowledge::sync) {
    ExpectedFile::write(*part, offset, bytes, when);
  }
  Bytes read(std::uint64_t offset, std::uint64_t bytes) const {
    Bytes got(bytes);
    must(part->read(offset, got.data(), bytes));
    return got;
  }

  std::unique_ptr<CachePart> part;
};

class Walk {
 public:
  Walk(const Shape& shape, std::uint64_t seed)
      : random_(seed), cached_(shape, random_bytes(shape.file_bytes, random_), {.blocks = 100}) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) one_step();
    (void)must(cached_.part->write_back(random_(), true));
    must(cached_.backing->set_size(cached_.expected.size()));
    EXPECT_EQ(cached_.file(), cached_.expected);
  }

 private:
  // Of this node, in one piece.
  std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t most) {
    const Layout& layout = cached_.part->layout();
    const std::uint64_t dealt =
        layout.nodes * layout.block_bytes * std::max<std::uint64_t>(layout.part_blocks, 1);
    const std::uint64_t end = std::max<std::uint64_t>(cached_.expected.size(), dealt) + 9000;
    while (true) {
      const std::uint64_t offset = random_() % end;
      if (place_of(layout, offset).node != cached_.part->node()) continue;
      return {offset, run_on_node(layout, offset, 1 + random_() % most)};
    }
  }

  void one_step() {
    CachePart& part = *cached_.part;
    const auto [offset, bytes] = range(random_() % 5 == 0 ? 100000 : 5000);
    switch (random_() % 12) {
      case 0:
        (void)must(part.write_back(random_(), random_() % 2 == 0));
        break;
      case 1:
        must(part.persist());
        break;
      case 2:
        must(part.fill(offset, bytes));
        break;
      case 3:
        cached_.cut(*cached_.part, random_() % most_);
        break;
      case 4:
      case 5:
      case 6:
        ASSERT_EQ(cached_.read(offset, bytes), cached_.wanted(offset, bytes));
        break;
      default:
        if (offset + bytes <= most_) {
          cached_.write(offset, random_bytes(bytes, random_),
                        static_cast<Acknowledge>(random_() % 3));
        }
    }
    if (part.layout().nodes == 1) {
      EXPECT_EQ(part.size_bytes(), cached_.expected.size());
    }
  }

  static constexpr std::uint64_t most_ = 250000;
  std::mt19937_64 random_;
  Cached cached_;
};

TEST(CachePart, random_calls_read_and_write_back_what_a_plain_array_holds) {
  std::mt19937_64 seeds(test_seed());
  for (const std::uint64_t block_bytes : {4096U, 65536U}) {
    for (const LayoutKind kind : {LayoutKind::cyclic, LayoutKind::parts}) {
      for (const std::uint32_t nodes : {1U, 2U, 3U}) {
        for (const std::uint64_t bytes : {0U, 1U, 100001U, 131072U}) {
          const auto node = static_cast<std::uint32_t>(seeds() % nodes);
          Walk({block_bytes, node, nodes, kind, bytes}, seeds()).run(150);
          ASSERT_FALSE(HasFailure()) << block_bytes << " " << nodes << " " << bytes;
        }
      }
    }
  }
}

TEST(CachePart, a_clean_file_is_never_written) {
  const Cached cached(Bytes(100001, 7));
  (void)cached.read(0, 100001);
  must(cached.part->persist());
  const auto before = std::filesystem::last_write_time(cached.file_path);
  const WriteBackTally tally = must(cached.part->write_back(5, true));
  EXPECT_EQ(tally.bytes, 0U);
  EXPECT_EQ(tally.writes, 0U);
  EXPECT_EQ(std::filesystem::last_write_time(cached.file_path), before);
}

TEST(CachePart, only_dirty_grains_are_written_and_neighbours_in_one_piece) {
  Cached cached(Bytes(1000003, 7), 65536);
  constexpr std::uint64_t grain = 65536 / grains_per_block;
  cached.write(10 * grain, Bytes(1, 1));
  cached.write(12 * grain - 1, Bytes(2, 2));
  cached.write(70 * grain, Bytes(grain, 3));
  cached.write(1000002, Bytes(1, 4));
  const WriteBackTally tally = must(cached.part->write_back(0, true));
  EXPECT_EQ(tally.writes, 3U);
  EXPECT_EQ(tally.bytes, 3 * grain + grain + 1000003 % grain);
  EXPECT_EQ(must(cached.part->write_back(0, true)).bytes, 0U);
  EXPECT_EQ(cached.file(), cached.expected);
}

TEST(CachePart, a_block_that_is_written_whole_is_not_read) {
  Cached cached(Bytes(6 * 16384 + 5001, 7), 16384);
  cached.write(16384, Bytes(16384, 1));
  cached.write(6 * 16384, Bytes(5001, 2));  // all that the file has of it
  EXPECT_EQ(cached.part->filled_bytes(), 0U);
  cached.write(0, Bytes(16383, 3));
  EXPECT_EQ(cached.part->filled_bytes(), 16384U);
  (void)must(cached.part->write_back(0, true));
  EXPECT_EQ(cached.file(), cached.expected);
}

TEST(CachePart, threads_write_disjoint_ranges_while_others_write_back_and_persist) {
  Cached cached(Bytes(256000, 7));
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  std::vector<std::thread> others;
  for (unsigned t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (unsigned i = 0; i < 2000; ++i) {
        // Neighbours share grains and blocks.
        const std::uint64_t at = (i % 500) * 400 + t * 100;
        const Bytes mine(100, static_cast<unsigned char>(i / 500 + t * 10));
        must(cached.part->write(at, mine.data(), 100, static_cast<Acknowledge>(i % 3)));
      }
    });
  }
  for (unsigned t = 0; t < 2; ++t) {
    others.emplace_back([&, t] {
      while (!done) {
        (void)must(cached.part->write_back(t * 13, t == 0));
        if (t == 1) must(cached.part->persist());
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  done = true;
  for (std::thread& thread : others) thread.join();
  for (unsigned i = 0; i < 2000; ++i) {
    cached.expected[i * 100] = static_cast<unsigned char>(3 + i % 4 * 10);
    std::fill_n(cached.expected.begin() + i * 100, 100, cached.expected[i * 100]);
  }
  EXPECT_EQ(cached.read(0, 256000), cached.expected);
  (void)must(cached.part->write_back(0, true));
  EXPECT_EQ(cached.file(), cached.expected);
}

// Its range of each 400 bytes, many times, with a part and a backing file of its own.
[[noreturn]] void write_in_a_process(const Cached& cached, unsigned process) {
  const auto backing = must(BackingFile::open(cached.file_path, BackingFile::Access::read_write));
  const auto part = attach_part(cached.part_path, backing);
  for (unsigned i = 0; i < 4000; ++i) {
    const Bytes mine(100, static_cast<unsigned char>(i / 500 + process * 10));
    must(part->write((i % 500) * 400 + process * 100, mine.data(), 100, Acknowledge::sync));
    if (i % 300 == process) (void)must(part->write_back(i, true));
  }
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(CachePart, processes_write_disjoint_ranges_while_others_write_back) {
  Cached cached(Bytes(200000, 7));
  const auto children =
      in_processes(4, [&](unsigned process) { write_in_a_process(cached, process); });
  for (int i = 0; i < 20; ++i) (void)must(cached.part->write_back(0, i % 2 == 0));
  expect_success(children);
  (void)must(cached.part->write_back(0, true));
  for (unsigned i = 0; i < 2000; ++i) {
    std::fill_n(cached.expected.begin() + i * 100, 100, static_cast<unsigned char>(7 + i % 4 * 10));
  }
  EXPECT_EQ(cached.file(), cached.expected);
}

// The descriptor of this process that has the file open.
int descriptor_of(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path) {
      return std::stoi(entry.path().filename().string());
    }
  }
  return -1;
}

// cache.P12.
TEST(CachePart, table_and_journal_take_space_for_what_was_used_only) {
  const Cached cached({4096, 0, 1, LayoutKind::cyclic, 100}, Bytes(100, 7), {.blocks = 1 << 20});
  EXPECT_EQ(cached.read(0, 100), Bytes(100, 7));
  const std::uint64_t all = cached.part->header().blocks * sizeof(BlockFormat);
  const PartHeaderFormat& header = cached.part->header();
  EXPECT_LT(cached.part->device().allocated_bytes() - header.journal_offset, all / 100);
  const std::uint64_t before = cached.part->device().allocated_bytes();
  const std::size_t used = cached.part->journal().entries().size();
  std::thread([&] {
    const std::byte bytes[5] = {};
    must(cached.part->write(10, bytes, sizeof bytes, Acknowledge::sync));
  }).join();
  EXPECT_LE(cached.part->device().allocated_bytes() - before, 2U * 4096);
  EXPECT_LE(cached.part->journal().entries().size(), used + 1);
}

// cache.P12.
TEST(CachePart, one_process_sees_and_writes_back_what_another_touched_far_away) {
  Cached cached({4096, 0, 1, LayoutKind::cyclic, 100}, Bytes(100, 7), {.blocks = 1 << 20});
  EXPECT_EQ(cached.read(0, 100), Bytes(100, 7));
  const auto other = attach_part(cached.part_path, *cached.backing);
  cached.write(5 * table_step * 4096, Bytes(5000, 8));
  cached.write(2 * table_step * 4096 - 10, Bytes(20, 9));
  EXPECT_EQ(must(other->write_back(0, true)).writes, 4U);
  EXPECT_EQ(cached.file(), cached.expected);
  Bytes got(5000);
  must(other->read(5 * table_step * 4096, got.data(), got.size()));
  EXPECT_EQ(got, Bytes(5000, 8));
  must(other->set_size(4096));
  EXPECT_EQ(cached.read(4096, 10), Bytes(10, 0));
}

TEST(CachePart, what_an_fsync_failed_to_write_is_written_anew) {
  Cached cached(Bytes(20000, 7));
  cached.write(5000, Bytes(3000, 1));
  // Takes what is written and loses it, and can't be synchronised.
  const int fd = descriptor_of(cached.file_path);
  ASSERT_GE(fd, 0);
  const FileHandle file(::dup(fd));
  const FileHandle null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_GE(::dup2(null.fd(), fd), 0);
  EXPECT_EQ(cached.part->write_back(0, true).status().code(), Code::io_error);
  ASSERT_GE(::dup2(file.fd(), fd), 0);
  (void)must(cached.part->write_back(0, true));
  EXPECT_EQ(cached.file(), cached.expected);
  EXPECT_EQ(must(cached.part->write_back(0, true)).bytes, 0U);
}

// cache.P4: the kernel tells only one of them.
TEST(CachePart, what_somebody_elses_fsync_failed_to_write_is_written_anew) {
  Cached cached(Bytes(20000, 7));
  cached.write(5000, Bytes(3000, 1));
  (void)must(cached.part->write_back(0, false));
  const int fd = descriptor_of(cached.file_path);
  ASSERT_GE(fd, 0);
  const FileHandle file(::dup(fd));
  const FileHandle null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_GE(::dup2(null.fd(), fd), 0);
  EXPECT_EQ(cached.backing->sync_data().code(), Code::io_error);
  ASSERT_GE(::dup2(file.fd(), fd), 0);
  EXPECT_EQ(cached.part->write_back(0, true).status().code(), Code::io_error);
  EXPECT_GT(must(cached.part->write_back(0, true)).bytes, 0U);
  EXPECT_EQ(must(cached.part->write_back(0, true)).bytes, 0U);
}

TEST(CachePart, what_could_not_be_written_back_stays_dirty) {
  Cached cached(Bytes(20000, 7));
  cached.write(5000, Bytes(3000, 1));
  const auto unwritable = must(BackingFile::open(cached.file_path, BackingFile::Access::read));
  cached.part->set_backing(&unwritable);
  EXPECT_EQ(cached.part->write_back(0, true).status().code(), Code::io_error);
  cached.part->set_backing(&*cached.backing);
  EXPECT_GT(must(cached.part->write_back(0, true)).bytes, 0U);
  EXPECT_EQ(cached.file(), cached.expected);
}

TEST(CachePart, a_block_that_could_not_be_read_is_tried_again) {
  Cached cached(Bytes(20000, 7));
  const auto unreadable = must(BackingFile::open(cached.file_path, BackingFile::Access::write));
  cached.part->set_backing(&unreadable);
  unsigned char byte = 0;
  EXPECT_EQ(cached.part->read(100, &byte, 1).code(), Code::io_error);
  EXPECT_EQ(cached.part->write(100, &byte, 1, Acknowledge::sync).code(), Code::io_error);
  cached.part->set_backing(&*cached.backing);
  EXPECT_EQ(cached.read(0, 20000), cached.expected);
}

TEST(CachePart, recovery_in_the_same_boot_tells_what_it_will_write) {
  Cached cached(Bytes(20000, 7));
  cached.write(0, Bytes(5000, 1));
  cached.write(9000, Bytes(10, 2), Acknowledge::durable);
  const std::uint64_t all = cached.part->unsaved_bytes(true);
  const std::uint64_t durable = cached.part->unsaved_bytes(false);
  EXPECT_EQ(durable, 32U);
  cached.part = attach_part(cached.part_path, *cached.backing);
  EXPECT_EQ(must(cached.part->recover(true)).bytes, all);
  EXPECT_EQ(cached.file(), cached.expected);
}

// A file of a few pages that claims 2^38 blocks, in holes: recovery looks at what is no hole.
TEST(CachePart, of_a_crafted_file_with_holes_is_recovered_without_looking_at_each_block) {
  Cached cached({128, 0, 1, LayoutKind::cyclic, 100}, Bytes(100, 7), {.blocks = 1});
  PartHeaderFormat header = cached.part->header();
  header.blocks = std::uint64_t{1} << 38;
  const std::uint64_t table_end = header.table_offset + header.blocks * sizeof(BlockFormat);
  header.block_offset = (table_end + 4095) / 4096 * 4096;
  header.checksum = crc64(&header, offsetof(PartHeaderFormat, checksum));
  const std::uint64_t far = header.blocks - 5;
  {
    FileDeviceOptions options;
    options.create = options.shared = true;
    options.sparse_bytes = header.block_offset + header.blocks * header.block_bytes;
    auto device = open_file_device(cached.directory / "crafted", options);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    BlockFormat block{};
    block.state = static_cast<std::uint32_t>(BlockState::present);
    block.dirty[0] = 3;
    device.value()->store(0, &header, sizeof header);
    device.value()->store_word(header.state_offset, header.blocks * header.block_bytes);
    device.value()->store(header.table_offset + far * sizeof block, &block, sizeof block);
  }
  const auto part = attach_part(cached.directory / "crafted", *cached.backing);
  EXPECT_EQ(part->unsaved_bytes(true), 2U);
  const WriteBackTally tally = must(part->recover(true));
  EXPECT_EQ(tally.bytes, 2U);
  EXPECT_EQ(std::filesystem::file_size(cached.file_path), far * 128 + 2);
}

}  // namespace
}  // namespace perdure
