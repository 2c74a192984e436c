// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks that make room for others (cache.P17), and those that wait for theirs (cache.P18): that
// nothing is lost or mixed up, whatever is used at the time, and that it is done only where it
// pays.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "cache/testing/small_device.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::uint64_t blocks = 32;

// A file, and a part of it with little room.
class Tight : public ExpectedFile {
 public:
  explicit Tight(std::uint32_t room_blocks, Bytes bytes = Bytes(blocks * block_bytes, 7),
                 std::uint64_t table = blocks, std::uint64_t of_block = block_bytes)
      : ExpectedFile(std::move(bytes)), room(room_blocks) {
    (void)new_part(part_path, *backing, 0, {LayoutKind::cyclic, 1, of_block, 0}, expected.size(),
                   {.blocks = table, .journal_entries = 64});
  }
  CachePart& join(std::uint64_t price = 6, std::uint64_t room_price = 0) {
    parts.push_back(join_evicting_part(part_path, *backing, room, price, room_price));
    return *parts.back();
  }
  CachePart& part() { return *parts.front(); }
  std::uint64_t evicted_blocks() { return part().evicted_bytes_of_all() / block_bytes; }

  static Bytes read(CachePart& by, std::uint64_t offset, std::uint64_t bytes) {
    Bytes got(bytes);
    if (!by.try_read(offset, got.data(), bytes)) must(by.read(offset, got.data(), bytes));
    return got;
  }
  // Reads a byte of the block so often.
  void use(std::uint64_t block, int times) {
    for (int i = 0; i < times; ++i) (void)read(part(), block * block_bytes, 1);
  }
  bool passes(std::uint64_t block) {
    const std::uint64_t before = part().passed_bytes();
    use(block, 1);
    return part().passed_bytes() != before;
  }

  SharedRoom room;
  std::vector<std::unique_ptr<CachePart>> parts;
};

TEST(PartEvict, a_block_that_is_used_more_gets_the_room_of_one_that_is_not) {
  Tight tight(2);
  CachePart& part = tight.join(50);
  tight.write(part, 10, Bytes(100, 1));
  tight.write(part, block_bytes + 10, Bytes(100, 2));
  EXPECT_TRUE(tight.passes(2));
  tight.use(2, 150);
  EXPECT_FALSE(tight.passes(2));
  EXPECT_EQ(tight.evicted_blocks(), 1U);
  EXPECT_EQ(part.evicted_bytes(), block_bytes);
  EXPECT_EQ(tight.room.left(), 0);
  EXPECT_NE(tight.passes(0), tight.passes(1));
  EXPECT_EQ(Tight::read(part, 0, 3 * block_bytes), tight.wanted(0, 3 * block_bytes));
  tight.write(part, 2 * block_bytes, Bytes(100, 3));
  (void)must(part.write_back(0, true));
  EXPECT_EQ(tight.file(), tight.expected);
}

TEST(PartEvict, what_is_evicted_is_in_the_file_then_also_where_it_had_nothing) {
  Tight tight(1, Bytes(100, 7));
  CachePart& part = tight.join();
  tight.write(part, 50, Bytes(3000, 1));  // beyond what the file had when the part was made
  tight.use(2, 20);
  EXPECT_EQ(tight.evicted_blocks(), 1U);
  EXPECT_EQ(tight.file(), tight.expected);
  tight.use(0, 40);
  EXPECT_FALSE(tight.passes(0));
  EXPECT_EQ(Tight::read(part, 0, 4096), tight.wanted(0, 4096));
}

TEST(PartEvict, where_all_is_used_alike_nothing_is_evicted) {
  Tight tight(8);
  tight.join(64);
  for (int round = 0; round < 1000; ++round) {
    for (std::uint64_t block = 0; block < blocks; ++block) tight.use(block, 1);
  }
  EXPECT_EQ(tight.evicted_blocks(), 0U);
  for (std::uint64_t block = 0; block < blocks; ++block) EXPECT_EQ(tight.passes(block), block >= 8);
}

// A few at a time, others now and then.
TEST(PartEvict, what_is_used_most_has_room_also_when_that_changes) {
  std::mt19937_64 random(test_seed());
  Tight tight(8);
  tight.join(64);
  for (std::uint64_t phase = 0; phase < 6; ++phase) {
    const std::uint64_t hot = phase * 5 % blocks;
    std::uint64_t passed = 0;
    for (int i = 0; i < 20000; ++i) {
      if (i == 10000) passed = tight.part().passed_bytes();
      const std::uint64_t block = random() % 10 == 0 ? random() % blocks : hot + random() % 6;
      tight.use(block % blocks, 1);
    }
    EXPECT_LT(tight.part().passed_bytes() - passed, 1500U) << "phase " << phase;
  }
  EXPECT_LT(tight.evicted_blocks(), 400U);
}

TEST(PartEvict, what_is_read_again_and_again_in_large_pieces_keeps_what_it_has) {
  Tight tight(8);
  tight.join(64);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      (void)Tight::read(tight.part(), block * block_bytes, block_bytes);
    }
  }
  EXPECT_EQ(tight.evicted_blocks(), 0U);
}

TEST(PartEvict, nobody_evicts_where_that_is_not_wanted_or_processes_are_not_known) {
  Tight tight(2);
  tight.join(EvictingTerms::never);
  tight.use(0, 1);
  tight.use(1, 1);
  tight.use(2, 10000);
  EXPECT_EQ(tight.evicted_blocks(), 0U);
}

// As another thread that is in the middle of it would.
TEST(PartEvict, what_somebody_uses_stays) {
  Tight tight(1);
  CachePart& part = tight.join();
  tight.write(part, 0, Bytes(100, 1));
  tight.use(1, 40);
  ASSERT_TRUE(tight.passes(0));  // evicting has begun
  const std::uint64_t before = tight.evicted_blocks();
  {
    const CachePart::Stay stay(part);
    tight.use(0, 40);
    EXPECT_EQ(tight.evicted_blocks(), before);
  }
  tight.use(0, 40);
  EXPECT_EQ(tight.evicted_blocks(), before + 1);
}

// Memory that calls back where it is first touched, in the middle of an access to a part.
class Trap {
 public:
  explicit Trap(std::function<void()> deed) : deed_(std::move(deed)) {
    bytes_ = static_cast<unsigned char*>(
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(bytes_, 3, size);
    EXPECT_EQ(::mprotect(bytes_, size, PROT_NONE), 0);
    set_ = this;
    struct sigaction action{};
    action.sa_handler = touched;
    action.sa_flags = SA_NODEFER;
    ::sigaction(SIGSEGV, &action, &before_);
  }
  ~Trap() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(bytes_, size);
    EXPECT_TRUE(was_touched_);
  }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;
  unsigned char* bytes() const { return bytes_; }

 private:
  static void touched(int) {
    if (set_->was_touched_) ::_exit(7);
    set_->was_touched_ = true;
    (void)::mprotect(set_->bytes_, size, PROT_READ | PROT_WRITE);
    set_->deed_();
  }
  static constexpr std::size_t size = 3 * block_bytes;
  static inline Trap* set_ = nullptr;
  std::function<void()> deed_;
  unsigned char* bytes_ = nullptr;
  bool was_touched_ = false;
  struct sigaction before_{};
};

constexpr std::uint64_t never = EvictingTerms::never;

TEST(PartEvict, a_block_that_is_only_read_has_room_when_reads_have_paid_for_it) {
  Tight tight(blocks);
  CachePart& part = tight.join(never, 10);
  for (int read = 0; read < 10; ++read) EXPECT_TRUE(tight.passes(3));
  EXPECT_EQ(part.filled_bytes(), 0U);
  EXPECT_EQ(part.through_bytes(), 0U);
  EXPECT_FALSE(tight.passes(3));
  EXPECT_EQ(part.filled_bytes(), block_bytes);
  tight.use(3, 9);
  EXPECT_TRUE(tight.passes(4));
  tight.use(3, 1);
  EXPECT_FALSE(tight.passes(4));  // those of the other have paid
  EXPECT_TRUE(tight.passes(5));
  tight.write(part, 6 * block_bytes + 5, Bytes(3, 1));  // a write does not wait
  EXPECT_FALSE(tight.passes(6));
  EXPECT_EQ(Tight::read(part, 0, blocks * block_bytes), tight.expected);
}

TEST(PartEvict, a_large_read_pays_less_for_room_than_a_small_one) {
  Tight tight(blocks);
  CachePart& part = tight.join(never, 10);
  for (int read = 0; read < 100; ++read) (void)Tight::read(part, 0, block_bytes);
  EXPECT_EQ(part.filled_bytes(), 0U);
  for (int read = 0; read < 100; ++read) (void)Tight::read(part, 0, block_bytes);
  EXPECT_EQ(part.filled_bytes(), block_bytes);
  tight.use(1, 11);
  EXPECT_EQ(part.filled_bytes(), 2 * block_bytes);
}

TEST(PartEvict, a_read_from_the_file_does_not_count_if_somebody_wrote_meanwhile) {
  Tight tight(blocks, Bytes());
  CachePart& part = tight.join(never, 100);
  CachePart& other = tight.join(never, 100);
  tight.write(other, 2 * block_bytes, Bytes(10, 1));
  Trap trap([&] { tight.write(other, 20, Bytes(300, 5)); });
  must(part.read(0, trap.bytes(), 4096));
  EXPECT_EQ(Bytes(trap.bytes(), trap.bytes() + 4096), tight.wanted(0, 4096));
}

TEST(PartEvict, what_the_file_has_beyond_what_was_cut_off_is_not_read) {
  Tight tight(blocks);
  CachePart& part = tight.join(never, 100);
  must(part.set_size(5000));  // and the file is cut after it
  must(part.set_size(20000));
  std::fill(tight.expected.begin() + 5000, tight.expected.end(), 0);
  EXPECT_EQ(Tight::read(part, 4000, 9000), tight.wanted(4000, 9000));
  EXPECT_EQ(part.filled_bytes(), 0U);
}

// Another process would have the block's room, and does not get it.
TEST(PartEvict, a_block_in_the_middle_of_an_access_is_not_evicted) {
  Tight tight(1);
  CachePart& part = tight.join();
  CachePart& other = tight.join();
  const auto use = [&](std::uint64_t block) {
    for (int i = 0; i < 60; ++i) (void)Tight::read(other, block * block_bytes, 1);
  };
  use(0);
  use(1);  // evicting has begun
  (void)Tight::read(part, 0, 1);
  const auto amid = [&](const std::function<void(unsigned char*)>& access) {
    use(0);
    const std::uint64_t before = tight.evicted_blocks();
    {
      Trap trap([&] { use(1); });
      access(trap.bytes());
      EXPECT_EQ(tight.evicted_blocks(), before);
    }
    EXPECT_EQ(Tight::read(part, 0, 4096), tight.wanted(0, 4096));
    use(1);
    EXPECT_EQ(tight.evicted_blocks(), before + 1);
    EXPECT_EQ(tight.in_file(0, 4096), tight.wanted(0, 4096));
  };
  const auto expect = [&](std::uint64_t offset, std::uint64_t bytes) {
    std::fill_n(tight.expected.begin() + static_cast<std::ptrdiff_t>(offset), bytes, 3);
  };
  amid([&](unsigned char* to) { EXPECT_TRUE(part.try_read(16, to, 8)); });
  amid([&](unsigned char* to) { must(part.read(0, to, 4096)); });
  EXPECT_NE(part.journal().entry_of_thread(), nullptr);  // try_write() uses no other
  for (const std::uint64_t bytes : {8U, 100U}) {
    amid([&](unsigned char* from) {
      expect(16, bytes);
      EXPECT_TRUE(part.try_write(16, from, bytes));
    });
  }
  for (const auto when : {Acknowledge::sync, Acknowledge::durable}) {
    for (const std::uint64_t bytes : {300U, 4096U}) {
      amid([&](unsigned char* from) {
        expect(0, bytes);
        must(part.write(0, from, bytes, when));
      });
    }
  }
}

// And one that passes through does not get room while somebody writes to the file.
TEST(PartEvict, a_block_in_the_middle_of_a_write_to_the_file_is_not_brought_in) {
  Tight tight(1);
  CachePart& part = tight.join();
  CachePart& other = tight.join();
  for (int i = 0; i < 60; ++i) (void)Tight::read(other, 0, 1);
  for (int i = 0; i < 60; ++i) (void)Tight::read(other, block_bytes, 1);
  Trap trap([&] {
    for (int i = 0; i < 60; ++i) (void)Tight::read(other, 100, 1);
    const std::uint64_t before = other.passed_bytes();
    (void)Tight::read(other, 100, 1);
    EXPECT_EQ(other.passed_bytes(), before + 1);
  });
  std::fill_n(tight.expected.begin() + 100, 300, 3);
  must(part.write(100, trap.bytes(), 300, Acknowledge::sync));
  EXPECT_EQ(Tight::read(other, 0, 4096), tight.wanted(0, 4096));
}

// Whoever evicts it may not have handed it over yet, or give up.
TEST(PartEvict, a_sync_waits_for_what_is_dirty_in_a_block_that_somebody_evicts) {
  Tight tight(2);
  CachePart& part = tight.join();
  tight.write(part, 100, Bytes(300, 1));
  auto* table = reinterpret_cast<BlockFormat*>(part.device().base() + part.header().table_offset);
  word(table[0].state).store(held_by(BlockState::present, 1));
  (void)must(part.write_back(0, true));
  EXPECT_EQ(tight.file(), tight.expected);
  word(table[0].state).store(static_cast<std::uint32_t>(BlockState::present));
}

class Walk {
 public:
  Walk(std::uint64_t of_block, std::uint32_t room, std::uint64_t seed)
      : random_(seed),
        tight_(room, random_bytes(100000, random_), most_ * 3 / 4 / of_block, of_block) {
    tight_.join(6, seed % 3 * 4);
    tight_.join(6, seed % 3 * 2);
  }

  std::uint64_t run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) one_step();
    (void)must(one().write_back(random_(), true));
    must(tight_.backing->set_size(tight_.expected.size()));
    EXPECT_TRUE(tight_.file() == tight_.expected);
    return tight_.part().evicted_bytes_of_all();
  }

 private:
  CachePart& one() { return *tight_.parts[random_() % 2]; }

  // Near where it was, so that it may pay.
  std::uint64_t offset() {
    if (random_() % 16 == 0) near_ = random_() % most_;
    return std::min(most_ - 1, near_ + random_() % 9000);
  }

  void one_step() {
    const std::uint64_t at = offset();
    const std::uint64_t bytes = std::min(
        most_ - at, random_() % 3 == 0 ? 8 : 1 + random_() % (random_() % 8 == 0 ? 30000 : 3000));
    switch (random_() % 24) {
      case 0:
        (void)must(one().write_back(random_(), random_() % 2 == 0));
        break;
      case 1:
        must(one().persist());
        break;
      case 2:
        (void)must(one().fill(at, bytes));
        break;
      case 3:
        if (random_() % 4 == 0) tight_.cut(one(), at);
        break;
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
        EXPECT_TRUE(Tight::read(one(), at, bytes) == tight_.wanted(at, bytes));
        break;
      default:
        tight_.write(one(), at, random_bytes(bytes, random_),
                     static_cast<Acknowledge>(random_() % 3));
    }
    EXPECT_EQ(one().size_bytes(), tight_.expected.size());
  }

  static constexpr std::uint64_t most_ = 250000;
  std::mt19937_64 random_;
  Tight tight_;
  std::uint64_t near_ = 0;
};

TEST(PartEvict, random_calls_read_and_write_what_a_plain_array_holds) {
  const std::uint64_t seed = test_seed();
  std::uint64_t evicted = 0;
  for (const std::uint64_t of_block : {4096U, 16384U}) {
    for (std::uint32_t room = 1; room < 6 && !HasFailure(); ++room) {
      for (std::uint64_t run = 0; run < 6; ++run) {
        SCOPED_TRACE("blocks of " + std::to_string(of_block) + ", room for " +
                     std::to_string(room) + ", run " + std::to_string(run));
        evicted += Walk(of_block, room, seed + run).run(600);
      }
    }
  }
  std::printf("%llu bytes were evicted\n", static_cast<unsigned long long>(evicted));
  EXPECT_GT(evicted, 1U << 20U);
}

// Writers with words and pieces of their own in all blocks, who read them again.
class Writer {
 public:
  static constexpr std::uint64_t piece = 128;
  static constexpr std::uint64_t writers = block_bytes / piece;
  Writer(CachePart& part, unsigned number, std::uint64_t seed)
      : part_(part), number_(number), random_(seed + number), last_(blocks, Bytes(piece, 7)) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) one_step();
  }
  void expect_in(const Bytes& file) const {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const auto from = file.begin() + static_cast<std::ptrdiff_t>(at(block));
      EXPECT_EQ(Bytes(from, from + piece), last_[block]) << "block " << block;
    }
  }

 private:
  std::uint64_t at(std::uint64_t block) const { return block * block_bytes + number_ * piece; }

  void one_step() {
    if (random_() % 20 == 0) near_ = random_() % blocks;
    const std::uint64_t block = random_() % 6 == 0 ? random_() % blocks : near_;
    Bytes& last = last_[block];
    if (random_() % 2 == 0) {
      EXPECT_EQ(Tight::read(part_, at(block), piece), last) << "block " << block;
      return;
    }
    const std::uint64_t bytes = random_() % 2 == 0 ? 8 : 1 + random_() % piece;
    const std::uint64_t within = bytes == 8 ? random_() % 16 * 8 : random_() % (piece - bytes + 1);
    const Bytes fresh = random_bytes(bytes, random_);
    const auto when = static_cast<Acknowledge>(random_() % 12 == 0 ? 2 : 1);
    must(part_.write(at(block) + within, fresh.data(), bytes, when));
    std::copy(fresh.begin(), fresh.end(), last.begin() + static_cast<std::ptrdiff_t>(within));
    if (random_() % 200 == 0) (void)must(part_.write_back(random_(), random_() % 2 == 0));
    if (random_() % 300 == 0) must(part_.persist());
  }

  CachePart& part_;
  unsigned number_;
  std::mt19937_64 random_;
  std::vector<Bytes> last_;
  std::uint64_t near_ = 0;
};

TEST(PartEvict, threads_that_hammer_a_tiny_part_find_what_they_wrote) {
  const std::uint64_t seed = test_seed();
  Tight tight(5);
  std::vector<Writer> writers;
  for (unsigned i = 0; i < 2; ++i) tight.join(6, i * 4);
  for (unsigned i = 0; i < 6; ++i) writers.emplace_back(*tight.parts[i % 2], i, seed);
  std::vector<std::thread> threads;
  for (Writer& writer : writers) threads.emplace_back([&writer] { writer.run(4000); });
  for (std::thread& thread : threads) thread.join();
  (void)must(tight.part().write_back(0, true));
  for (const Writer& writer : writers) writer.expect_in(tight.file());
  std::printf("%llu blocks were evicted\n",
              static_cast<unsigned long long>(tight.evicted_blocks()));
  EXPECT_GT(tight.evicted_blocks(), 20U);
}

[[noreturn]] void write_in_a_process(Tight& tight, unsigned process, std::uint64_t seed) {
  tight.backing.emplace(must(BackingFile::open(tight.file_path, BackingFile::Access::read_write)));
  tight.parts.clear();
  CachePart& part = tight.join(6, process % 2 * 4);
  Writer first(part, 2 * process, seed);
  Writer second(part, 2 * process + 1, seed);
  std::thread other([&] { second.run(6000); });
  first.run(6000);
  other.join();
  (void)must(part.write_back(process, true));
  const Bytes file = tight.file();
  first.expect_in(file);
  second.expect_in(file);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(PartEvict, processes_that_hammer_a_tiny_part_find_what_they_wrote) {
  const std::uint64_t seed = test_seed();
  Tight tight(5);
  expect_success(
      in_processes(4, [&](unsigned process) { write_in_a_process(tight, process, seed); }));
  tight.join();
  std::printf("%llu blocks were evicted\n",
              static_cast<unsigned long long>(tight.evicted_blocks()));
  EXPECT_GT(tight.evicted_blocks(), 20U);
}

}  // namespace
}  // namespace perdure
