// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that are killed while they write and write back, at random times and at each step of a
// write-back: what they leave is never taken for somebody else's change of the file, and a change
// by somebody else always is.
// ctest: TIMEOUT 300 LONG 1800
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <new>

#include "base/clock.hpp"
#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"
#include "cache/testing/small_device.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 16384;
constexpr std::uint64_t file_bytes = 10 * block_bytes + 77;

// A file, its part, and processes that use it and are killed.
class Job {
 public:
  explicit Job(std::mt19937_64& random) : first_(random_bytes(file_bytes, random)) {
    write_file(file(), first_);
    (void)must(recover());  // nothing is there
    keeper_ = ::fork();     // makes the part, and dies with the others
    if (keeper_ == 0) keep();
    while (!std::filesystem::exists(part_file()) || is_unborn(part_file())) ::usleep(100);
  }
  ~Job() {
    if (keeper_ != 0) kill_all();
    ::munmap(started_, sizeof *started_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::string file() const { return scratch_ / "file"; }
  std::string parts() const { return scratch_ / "parts"; }
  std::string part_file() const { return part_file_path(parts(), file()); }

  // Until all that were started have joined.
  void await() const {
    while (*started_ < children_.size()) ::usleep(100);
  }

  // A process that has joined, and does this until it is killed; `seed`: half of the blocks that it
  // asks for have no room.
  pid_t start(const std::function<void(CachePart&)>& deed,
              std::optional<std::uint64_t> seed = std::nullopt) {
    const pid_t child = ::fork();
    if (child != 0) {
      children_.push_back(child);
      return child;
    }
    const auto backing = open_file();
    OpenPart open = must(join_part(parts(), file()));
    open.part->set_backing(&backing);
    if (seed) join_with_little_room(open, backing, *seed);
    ++*started_;
    deed(*open.part);
    while (true) ::pause();
  }
  void kill_all() {
    children_.push_back(keeper_);
    keeper_ = 0;
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) {
      int status = 0;
      (void)::waitpid(child, &status, 0);
    }
    children_.clear();
  }
  BackingFile open_file() const {
    return must(BackingFile::open(file(), BackingFile::Access::read_write));
  }
  Result<bool> recover() const {
    const auto backing = open_file();
    PERDURE_TRY(recover_leftover_part(parts(), file(), backing, std::nullopt));
    return true;
  }
  FileEvidence evidence() const {
    return must(attach_part_file(part_file()))->changes().evidence();
  }
  // Until the file's time of change tells a change from one of the processes.
  void outwait() const {
    const FileEvidence known = evidence();
    const std::uint64_t late = std::max(grace_ns, 4 * known.slowest_ns) + 30'000'000;
    while (wall_clock_ns() < known.begun_ns + late) ::usleep(1000);
  }

 private:
  void join_with_little_room(OpenPart& open, const BackingFile& backing, std::uint64_t seed) const {
    auto part = attach_small_part(part_file(), backing, random_room(seed));
    must(part->join_owners(FileHandle(::dup(open.lock.fd()))));
    open.part = std::move(part);
  }
  [[noreturn]] void keep() const {
    PartRequest request;
    const auto backing = open_file();
    request.directory = parts();
    request.identity.path = file();
    request.identity.file_device = backing.device();
    request.identity.file_inode = backing.inode();
    request.identity.layout = make_layout(LayoutKind::cyclic, 1, block_bytes, file_bytes);
    request.file_bytes = file_bytes;
    const OpenPart open = must(make_part(request, backing));
    while (true) ::pause();
  }

  static std::atomic<std::size_t>* shared_counter() {
    void* const page = ::mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    return new (page) std::atomic<std::size_t>(0);
  }

  TemporaryDirectory scratch_;
  Bytes first_;
  std::atomic<std::size_t>* started_ = shared_counter();
  pid_t keeper_ = 0;
  std::vector<pid_t> children_;
};

void write_some(CachePart& part, std::mt19937_64& random) {
  const std::uint64_t most = random() % 3 == 0 ? 40000 : 64;
  const std::uint64_t bytes = 1 + random() % most;
  const std::uint64_t offset = random() % (file_bytes - bytes);
  const auto when = random() % 4 == 0 ? Acknowledge::durable : Acknowledge::sync;
  const Bytes fresh(bytes, static_cast<unsigned char>(random()));
  must(part.write(offset, fresh.data(), bytes, when));
  if (random() % 2 == 0) return;
  const auto piece = static_cast<std::uint32_t>(1U << random() % 5);
  const auto count = static_cast<std::uint32_t>(1 + random() % 1000);
  const Bytes pieces(std::size_t{piece} * count, static_cast<unsigned char>(random()));
  const PiecesFormat run{random() % (file_bytes / 2) / 16 * 16, std::uint64_t{2} * piece, piece,
                         count};
  must(part.write_pieces(run, reinterpret_cast<const std::byte*>(pieces.data()), when));
}

void kill_at_random(Job& job, std::mt19937_64& random, bool full = false) {
  for (int writer = 0; writer < 2; ++writer) {
    const std::uint64_t seed = random();
    const auto write = [seed](CachePart& part) {
      std::mt19937_64 own(seed);
      while (true) write_some(part, own);
    };
    job.start(write, full ? std::optional(seed) : std::nullopt);
  }
  for (std::uint64_t writers_back = 1 + random() % 2; writers_back != 0; --writers_back) {
    job.start([](CachePart& part) {
      for (std::uint64_t turn = 0;; ++turn) (void)must(part.write_back(turn, turn % 3 != 0));
    });
  }
  job.await();
  ::usleep(static_cast<useconds_t>(random() % 6000));
  job.kill_all();
}

// Recoveries that are killed too.
void kill_recoveries(const Job& job, std::mt19937_64& random) {
  for (std::uint64_t times = random() % 3; times != 0; --times) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = job.recover().status().code() == Code::foreign;
      ::_exit(refused ? 1 : 0);
    }
    ::usleep(static_cast<useconds_t>(random() % 1500));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << "a killed recovery is foreign";
  }
}

TEST(PartChanged, what_killed_processes_leave_is_never_taken_for_a_change_by_others) {
  std::mt19937_64 random(test_seed());
  const int kills = slow_tests() ? 200 : 32;
  int under_way = 0;
  int differ = 0;
  for (int kill = 0; kill < kills && !HasFailure(); ++kill) {
    Job job(random);
    kill_at_random(job, random, kill % 3 == 0);
    const FileEvidence left = job.evidence();
    under_way += left.under_way ? 1 : 0;
    differ += left.recorded == must(job.open_file().stamp()) ? 0 : 1;
    kill_recoveries(job, random);
    const Status recovered = job.recover().status();
    EXPECT_TRUE(recovered.ok()) << "kill " << kill << ": " << recovered.message();
  }
  std::printf("%d kills: %d with a change under way, %d with one that was not recorded\n", kills,
              under_way, differ);
  EXPECT_GT(under_way, kills / 16);
}

struct Change {
  const char* name;
  std::function<void(const std::string&)> make;
};

void set_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(file_bytes / 2));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(file_bytes / 2));
  file.put(static_cast<char>(byte ^ 1));
}

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"a byte", set_byte},
      {"a cut", [](const std::string& path) { std::filesystem::resize_file(path, 1000); }},
      {"a copy", [](const std::string& path) { write_file(path, Bytes(file_bytes, 5)); }},
      {"the same bytes again", [](const std::string& path) { write_file(path, read_file(path)); }},
      {"a byte, and the time set back",
       [](const std::string& path) {
         struct stat was{};
         ASSERT_EQ(::stat(path.c_str(), &was), 0);
         set_byte(path);
         const timespec times[] = {{0, UTIME_OMIT}, was.st_mtim};
         ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
       }},
  };
  return all;
}

TEST(PartChanged, a_change_after_a_kill_is_always_noticed) {
  std::mt19937_64 random(test_seed());
  const int kills = slow_tests() ? 60 : 10;
  int under_way = 0;
  for (int kill = 0; kill < kills && !HasFailure(); ++kill) {
    Job job(random);
    kill_at_random(job, random, kill % 3 == 0);
    under_way += job.evidence().under_way ? 1 : 0;
    job.outwait();
    const Change& change = changes()[static_cast<std::size_t>(kill) % changes().size()];
    change.make(job.file());
    const Bytes changed = read_file(job.file());
    EXPECT_EQ(job.recover().status().code(), Code::foreign) << change.name;
    EXPECT_EQ(read_file(job.file()), changed) << change.name;
  }
  std::printf("%d changes noticed, %d of them after a kill with a change under way\n", kills,
              under_way);
}

// Runs a process from one system call to the next, and kills it at the `stops`th stop, or some
// instructions later. False: it came to its end.
bool killed_at_step(pid_t child, int stops, int instructions) {
  int status = 0;
  ::waitpid(child, &status, 0);
  for (int stop = 0; stop < stops; ++stop) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1) return false;
  }
  for (int i = 0; i < instructions; ++i) {
    ::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return false;
  }
  return true;
}

void write_back_traced(CachePart& part) {
  const Bytes fresh(3 * block_bytes, 6);
  must(part.write(1000, fresh.data(), fresh.size(), Acknowledge::sync));
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(7);
  ::raise(SIGSTOP);
  (void)must(part.write_back(0, true));
  ::raise(SIGUSR1);
}

void pass_through_traced(CachePart& part) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(7);
  ::raise(SIGSTOP);
  const Bytes fresh(3 * block_bytes, 6);
  must(part.write(1000, fresh.data(), fresh.size(), Acknowledge::sync));
  must(part.write(5 * block_bytes - 50, fresh.data(), 100, Acknowledge::durable));
  ::raise(SIGUSR1);
}

// Kills a job at each step of `deed`, in each round after the first some instructions later, and
// recovers it. `check` gets the file's bytes, and whether the job ended before. Returns the kills.
int kill_at_each_step(int rounds, const std::function<void(CachePart&)>& deed, bool full,
                      const std::function<void(const Bytes& left, bool ended)>& check) {
  std::mt19937_64 random(test_seed());
  int kills = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int stops = 1; !testing::Test::HasFailure(); ++stops) {
      Job job(random);
      const pid_t child = job.start(deed, full ? std::optional(random()) : std::nullopt);
      const int instructions = round == 0 ? 0 : static_cast<int>(random() % 400);
      const bool killed = killed_at_step(child, stops, instructions);
      job.kill_all();
      const Status recovered = job.recover().status();
      EXPECT_TRUE(recovered.ok()) << "stop " << stops << ", " << instructions
                                  << " instructions later: " << recovered.message();
      check(read_file(job.file()), !killed);
      if (!killed) break;
      ++kills;
    }
  }
  std::printf("%d kills at steps\n", kills);
  return kills;
}

TEST(PartChanged, a_kill_at_any_step_of_a_write_that_passes_through_is_not_either) {
  const auto check = [](const Bytes& left, bool ended) {
    if (!ended) return;
    EXPECT_EQ(left[1000], 6);
    EXPECT_EQ(left[5 * block_bytes + 49], 6);
  };
  EXPECT_GT(kill_at_each_step(3, pass_through_traced, true, check), 40);
}

TEST(PartChanged, a_kill_at_any_step_of_a_write_back_is_not_taken_for_a_change_by_others) {
  const auto check = [](const Bytes& left, bool) { EXPECT_EQ(left[1000], 6); };
  EXPECT_GT(kill_at_each_step(4, write_back_traced, false, check), 40);
}

}  // namespace
}  // namespace perdure
