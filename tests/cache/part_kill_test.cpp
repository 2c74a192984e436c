// SPDX-License-Identifier: BSD-3-Clause
//
// Kills: processes that write to a part, and write it back, die by SIGKILL at a random moment; then
// recovery, which is killed too, must give the cached file every acknowledged write, and small ones
// whole or not at all.
// ctest: TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cache/early_write_back.hpp"
#include "cache/testing/small_device.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr unsigned writers = 2;
constexpr std::uint64_t region_bytes = 100000;
constexpr std::uint64_t file_bytes = writers * region_bytes - 777;
constexpr std::uint64_t block_bytes = 16384;

// What a writer does next; the same for the one who checks.
struct Step {
  std::uint64_t offset;
  std::uint64_t bytes;
  unsigned char value;
  Acknowledge when;
  // Of pieces of so many bytes each, `stride` apart.
  std::uint64_t count = 1;
  std::uint64_t stride = 1;
  bool small() const { return bytes <= std::min<std::uint64_t>(journal_bytes, block_bytes); }
  PiecesFormat pieces() const {
    return {offset, stride, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(count)};
  }
  std::uint64_t offset_of(std::uint64_t piece) const { return offset + piece * stride; }
};

Step next_step(std::mt19937_64& random, unsigned writer) {
  Step step{};
  step.bytes = 1 + random() % (random() % 10 == 0 ? 60000 : 4096);
  step.offset = writer * region_bytes + random() % (region_bytes - step.bytes);
  step.value = static_cast<unsigned char>(random());
  step.when = static_cast<Acknowledge>(random() % 3);
  if (random() % 4 != 0) return step;
  step.bytes = random() % 5 == 0 ? 24 : 1U << random() % 4;
  step.stride = step.bytes * (1 + random() % 40);
  step.count = 1 + random() % std::min<std::uint64_t>(500, 90000 / step.stride);
  step.offset = writer * region_bytes + random() % 1000 * 8;  // where these bytes divide, mostly
  return step;
}

std::mt19937_64 steps_of(std::uint64_t seed, unsigned writer) {
  return std::mt19937_64(seed * writers + writer);
}

// A child that runs until it is killed, and the pipe through which it acknowledges.
class Child {
 public:
  template <typename Function>
  explicit Child(const Function& function) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    receive_ = FileHandle(ends[0]);
    FileHandle send(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    function(send.fd());
    ::_exit(0);
  }
  // Kills it; how many acknowledgements it wrote.
  std::uint64_t kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    std::uint64_t count = 0;
    Bytes some(65536);
    for (ssize_t got = 1; got > 0;) {
      got = ::read(receive_.fd(), some.data(), some.size());
      count += got > 0 ? static_cast<std::uint64_t>(got) : 0;
    }
    return count;
  }

 private:
  FileHandle receive_;
  pid_t pid_ = 0;
};

// At most what a pipe takes without a reader.
constexpr int steps_max = 60000;

class Campaign {
 public:
  enum class Room : std::uint8_t { all, half, evicting };
  // `half` of the blocks that a process asks for have no room; or there is some for 3 at a time.
  explicit Campaign(std::uint64_t seed, Room room = Room::all) : random_(seed), room_(room) {}

  void one_kill() {
    const TemporaryDirectory directory;
    some_ = std::make_unique<SharedRoom>(3);
    const Bytes first = random_bytes(file_bytes, random_);
    write_file(directory / "file", first);
    const auto backing = open(directory);
    new_part(directory / "part", backing, 0, {LayoutKind::cyclic, 1, block_bytes, 0}, file_bytes,
             {.blocks = 16, .journal_entries = 8});
    const std::uint64_t seed = random_();
    std::vector<Child> children;
    for (unsigned writer = 0; writer < writers; ++writer) {
      children.emplace_back([&](int pipe) { write_until_killed(directory, seed, writer, pipe); });
    }
    children.emplace_back([&](int) { write_back_until_killed(directory); });
    ::usleep(static_cast<useconds_t>(random_() % 8000));
    std::vector<std::uint64_t> done;
    for (Child& child : children) done.push_back(child.kill());
    kill_recoveries(directory);
    const auto left = attach_part(directory / "part", backing);
    evicted += left->evicted_bytes_of_all() / block_bytes;
    (void)must(left->recover(true));
    check(first, seed, done, read_file(directory / "file"));
  }

  std::uint64_t acknowledged = 0;
  std::uint64_t redone = 0;  // small writes that were not acknowledged, and are there
  std::uint64_t absent = 0;
  std::uint64_t evicted = 0;  // blocks

 private:
  static BackingFile open(const TemporaryDirectory& directory) {
    return must(BackingFile::open(directory / "file", BackingFile::Access::read_write));
  }

  std::unique_ptr<CachePart> attach(const TemporaryDirectory& directory, const BackingFile& backing,
                                    std::uint64_t seed) const {
    const std::string file = directory / "part";
    if (room_ == Room::evicting) return join_evicting_part(file, backing, *some_, 3);
    return room_ == Room::half ? attach_small_part(file, backing, random_room(seed))
                               : attach_part(file, backing);
  }

  void write_until_killed(const TemporaryDirectory& directory, std::uint64_t seed, unsigned writer,
                          int pipe) const {
    const auto backing = open(directory);
    const auto part = attach(directory, backing, seed + writer);
    const auto early = EarlyWriteBack::start(*part, seed, {0, 200'000});
    std::mt19937_64 random = steps_of(seed, writer);
    for (int i = 0; i < steps_max; ++i) {
      const Step step = next_step(random, writer);
      const Bytes bytes(step.bytes * step.count, step.value);
      if (step.count == 1) {
        must(part->write(step.offset, bytes.data(), step.bytes, step.when));
      } else {
        const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
        must(part->write_pieces(step.pieces(), from, step.when));
      }
      if (::write(pipe, "", 1) != 1) std::abort();
    }
  }

  void write_back_until_killed(const TemporaryDirectory& directory) const {
    const auto backing = open(directory);
    const auto part = room_ == Room::evicting ? attach(directory, backing, 0)
                                              : attach_part(directory / "part", backing);
    for (std::uint64_t turn = 0; turn < 100000; ++turn) {
      (void)must(part->write_back(turn, turn % 3 != 0));
      if (turn % 5 == 0) must(part->persist());
    }
  }

  void kill_recoveries(const TemporaryDirectory& directory) {
    for (std::uint64_t times = random_() % 3; times != 0; --times) {
      Child child([&](int) {
        const auto backing = open(directory);
        const auto part = attach_part(directory / "part", backing);
        while (true) (void)must(part->recover(true));
      });
      ::usleep(static_cast<useconds_t>(random_() % 2000));
      child.kill();
    }
  }

  void check(Bytes expected, std::uint64_t seed, const std::vector<std::uint64_t>& done,
             const Bytes& got) {
    expected.resize(writers * region_bytes);
    Bytes file = got;
    file.resize(expected.size());
    for (unsigned writer = 0; writer < writers; ++writer) {
      std::mt19937_64 random = steps_of(seed, writer);
      for (std::uint64_t i = 0; i < done[writer]; ++i) {
        const Step step = next_step(random, writer);
        for (std::uint64_t piece = 0; piece < step.count; ++piece) {
          std::fill_n(place(expected, step.offset_of(piece)), step.bytes, step.value);
        }
      }
      acknowledged += done[writer];
      allow_for(next_step(random, writer), expected, file);
    }
    const auto differs = std::mismatch(file.begin(), file.end(), expected.begin());
    EXPECT_EQ(differs.first - file.begin(), file.end() - file.begin())
        << "lost after " << done[0] << " and " << done[1] << " acknowledged writes";
  }

  // The write that was under way: takes from the file what that may have of it. Each of several
  // pieces is a write of its own.
  void allow_for(const Step& step, Bytes& expected, const Bytes& file) {
    for (std::uint64_t piece = 0; piece < step.count; ++piece) {
      Step one = step;
      one.offset = step.offset_of(piece);
      allow_for_one(one, expected, file);
    }
  }
  void allow_for_one(const Step& step, Bytes& expected, const Bytes& file) {
    const auto from = place(expected, step.offset);
    if (!step.small()) {
      for (std::uint64_t i = 0; i < step.bytes; ++i) {
        if (file[step.offset + i] == step.value) from[static_cast<std::ptrdiff_t>(i)] = step.value;
      }
      return;
    }
    if (std::equal(from, from + static_cast<std::ptrdiff_t>(step.bytes),
                   file.begin() + static_cast<std::ptrdiff_t>(step.offset))) {
      ++absent;
      return;
    }
    std::fill_n(from, step.bytes, step.value);
    ++redone;
  }

  static Bytes::iterator place(Bytes& bytes, std::uint64_t offset) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  }

  std::mt19937_64 random_;
  Room room_;
  std::unique_ptr<SharedRoom> some_;
};

int kills() {
  return slow_tests() ? 1000 : 60;
}

void run(Campaign& campaign) {
  for (int kill = 0; kill < kills() && !testing::Test::HasFailure(); ++kill) campaign.one_kill();
  std::printf("%d kills: %llu writes acknowledged, %llu not but there, %llu absent\n", kills(),
              static_cast<unsigned long long>(campaign.acknowledged),
              static_cast<unsigned long long>(campaign.redone),
              static_cast<unsigned long long>(campaign.absent));
}

TEST(PartKill, every_acknowledged_write_is_there_and_small_ones_are_whole_or_absent) {
  Campaign campaign(test_seed());
  run(campaign);
}

TEST(PartKill, the_same_where_some_of_it_passes_through) {
  Campaign campaign(test_seed(), Campaign::Room::half);
  run(campaign);
}

TEST(PartKill, the_same_where_blocks_make_room_for_others) {
  Campaign campaign(test_seed(), Campaign::Room::evicting);
  run(campaign);
  std::printf("%llu blocks were evicted\n", static_cast<unsigned long long>(campaign.evicted));
  EXPECT_GT(campaign.evicted, static_cast<std::uint64_t>(kills() / 4));  // on a slow machine, too
}

}  // namespace
}  // namespace perdure
