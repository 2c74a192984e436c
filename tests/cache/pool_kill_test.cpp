// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that write to a file that is committed with a pool, die by SIGKILL at a random moment,
// also amid a commit: recovery, which is killed too, gives the file byte for byte as it was at the
// version that the pool has.
// ctest: TIMEOUT 120
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cache/part_directory.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

constexpr unsigned writers = 2;
constexpr std::uint64_t region_bytes = 50000;
constexpr std::uint64_t block_bytes = 16384;
constexpr std::uint64_t first_version = 4;

// What the writers share besides the part: the pool, as far as it matters here.
struct Job {
  pthread_barrier_t barrier;
  std::atomic<std::uint64_t> version{first_version};
};

Job& make_job() {
  void* memory =
      ::mmap(nullptr, sizeof(Job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* job = new (memory) Job;
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&job->barrier, &attributes, writers);
  ::pthread_barrierattr_destroy(&attributes);
  return *job;
}

struct Step {
  std::uint64_t offset;
  Bytes bytes;
};

// What a writer writes for a version: the same for those who check.
std::vector<Step> steps_of(std::uint64_t seed, unsigned writer, std::uint64_t version) {
  std::mt19937_64 random(seed * 1000 + version * writers + writer);
  std::vector<Step> steps(1 + random() % 8);
  for (Step& step : steps) {
    // The region grows, and with it the file.
    const std::uint64_t room = std::min(region_bytes, 10000 + 2000 * version);
    const std::uint64_t bytes = 1 + random() % (random() % 5 == 0 ? 9000 : 500);
    step.offset = writer * region_bytes + random() % (room - bytes);
    step.bytes = Bytes(bytes, static_cast<unsigned char>(random()));
  }
  return steps;
}

class Campaign {
 public:
  explicit Campaign(std::uint64_t seed) : random_(seed) {}

  void one_kill() {
    const TemporaryDirectory directory;
    const Bytes first = random_bytes(60000, random_);
    write_file(directory / "file", first);
    const auto backing = must(open_backing(directory));
    {
      OpenPart open = must(make_part(request(directory, backing), backing));
      must(leave_part(std::move(open), true));
    }
    const std::uint64_t seed = random_() % 1000000;
    Job& job = make_job();
    std::vector<pid_t> children;
    for (unsigned writer = 0; writer < writers; ++writer) {
      children.push_back(::fork());
      if (children.back() == 0) write_until_killed(directory, job, seed, writer);
    }
    ::usleep(static_cast<useconds_t>(random_() % 20000));
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    const PoolVersion version{{1, 0}, job.version, 0, 0};
    versions += version.version - first_version;
    kill_recovery(directory, version);
    const Status recovered =
        recover_leftover_part(directory / "parts", directory / "file", backing, version);
    EXPECT_TRUE(recovered.ok()) << recovered.message();
    EXPECT_TRUE(read_file(directory / "file") == contents(first, seed, version.version))
        << "at version " << version.version << ", seed " << seed;
    ::munmap(&job, sizeof job);
  }

  std::uint64_t versions = 0;

 private:
  static Result<BackingFile> open_backing(const TemporaryDirectory& directory) {
    return BackingFile::open(directory / "file", BackingFile::Access::read_write);
  }
  static PartRequest request(const TemporaryDirectory& directory, const BackingFile& backing) {
    PartRequest request;
    request.directory = directory / "parts";
    request.identity.path = backing.path();
    request.identity.file_inode = backing.inode();
    request.identity.layout = {LayoutKind::cyclic, 1, block_bytes, 0};
    request.identity.pool_job[0] = 1;
    request.restored = PoolVersion{{1, 0}, first_version, 0, 0};
    request.file_bytes = 60000;
    return request;
  }

  [[noreturn]] static void write_until_killed(const TemporaryDirectory& directory, Job& job,
                                              std::uint64_t seed, unsigned writer) {
    const auto backing = must(open_backing(directory));
    OpenPart open = must(join_part(directory / "parts", backing.path()));
    CachePart& part = *open.part;
    part.set_backing(&backing);
    for (std::uint64_t version = first_version + 1;; ++version) {
      for (const Step& step : steps_of(seed, writer, version)) {
        const auto when = static_cast<Acknowledge>(step.offset % 3);
        must(part.write(step.offset, step.bytes.data(), step.bytes.size(), when));
      }
      if (version % 3 == writer) (void)must(part.write_back(version, version % 2 == 0));
      must(part.persist());
      must(part.set_prepared(version));
      ::pthread_barrier_wait(&job.barrier);
      job.version = version;  // both say the same
      ::pthread_barrier_wait(&job.barrier);
      must(part.set_base_version(version, 0).status());
    }
  }

  void kill_recovery(const TemporaryDirectory& directory, const PoolVersion& version) {
    if (random_() % 2 == 0) return;
    const pid_t child = ::fork();
    if (child == 0) {
      const auto backing = must(open_backing(directory));
      (void)recover_leftover_part(directory / "parts", directory / "file", backing, version);
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(random_() % 1500));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  static Bytes contents(Bytes file, std::uint64_t seed, std::uint64_t newest) {
    for (std::uint64_t version = first_version + 1; version <= newest; ++version) {
      for (unsigned writer = 0; writer < writers; ++writer) {
        for (const Step& step : steps_of(seed, writer, version)) {
          file.resize(std::max<std::size_t>(file.size(), step.offset + step.bytes.size()));
          std::copy(step.bytes.begin(), step.bytes.end(),
                    file.begin() + static_cast<std::ptrdiff_t>(step.offset));
        }
      }
    }
    return file;
  }

  std::mt19937_64 random_;
};

TEST(GroupKill, the_file_is_as_it_was_at_the_version_of_the_pool) {
  Campaign campaign(test_seed());
  constexpr int kills = 60;
  for (int kill = 0; kill < kills && !HasFailure(); ++kill) campaign.one_kill();
  EXPECT_GT(campaign.versions, 0U);
  std::printf("%d kills, %llu versions committed\n", kills,
              static_cast<unsigned long long>(campaign.versions));
}

}  // namespace
}  // namespace perdure
