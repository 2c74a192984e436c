// SPDX-License-Identifier: BSD-3-Clause
//
// bench_file_operations MODE: what single accesses to a file cost two ranks, one JSON object for
// each batch of accesses (python/perdure_bench/cache.py makes facts of them).
//
//   local   each rank in a region of its own: cached on one node, stock MPI-IO, pread and pwrite,
//           mapped memory
//   remote  rank 0 in the part of rank 1's node, and in rank 1's memory by MPI's one-sided calls;
//           rank 1 waits inside MPI, or computes and calls MPI every ten milliseconds
//   idle    the CPU time of all threads but the main one while a cached file is open on two nodes
//
// In each round all ways take their turn, and each way goes on where its last turn ended.
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "file_ways.hpp"
#include "words.hpp"

namespace {

constexpr std::uint64_t large_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t computing_ns = 10'000'000;
constexpr unsigned idle_s = 2;

struct Options {
  std::string mode;
  std::string memory;  // directories
  std::string disk;
  std::string gluster;  // empty: there is none
  int rounds = 5;
  std::uint64_t region_bytes = std::uint64_t{64} << 20;
};

struct Operation {
  bool write;
  bool random;
  int bytes;
};

int rank = 0;

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::vector<Operation> all_operations() {
  std::vector<Operation> operations;
  for (const int bytes : {8, 64, 4096, static_cast<int>(large_bytes)}) {
    for (const bool random : {false, true}) {
      for (const bool write : {false, true}) operations.push_back({write, random, bytes});
    }
  }
  return operations;
}

// Where the next access of a way goes, in a region of `bytes`; cheap beside what is measured.
class Course {
 public:
  std::uint64_t next(const Operation& operation, std::uint64_t bytes) {
    const auto step = static_cast<std::uint64_t>(operation.bytes);
    if (!operation.random) {
      at_ = at_ + 2 * step <= bytes ? at_ + step : 0;
      return at_;
    }
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    const auto drawn = static_cast<std::uint64_t>(state_ >> 33);
    return ((drawn * (bytes / step)) >> 31) * step;
  }

 private:
  std::uint64_t at_ = 0;
  std::uint64_t state_ = 40;
};

struct Taken {
  double wall_ns;
  double cpu_ns;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), buffer_(large_bytes, 'p') {}

  Taken run_batch(Way& way, const Operation& operation, std::uint64_t begin, int count) {
    Course& course = courses_[{way.name(), operation.random, operation.bytes}];
    const std::uint64_t region = options_.region_bytes;
    const std::uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::uint64_t wall = clock_ns(CLOCK_MONOTONIC);
    if (operation.write) {
      for (int i = 0; i < count; ++i) {
        way.write(begin + course.next(operation, region), buffer_.data(), operation.bytes);
      }
    } else {
      for (int i = 0; i < count; ++i) {
        way.read(begin + course.next(operation, region), buffer_.data(), operation.bytes);
      }
    }
    const std::uint64_t wall_end = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t cpu_end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return {static_cast<double>(wall_end - wall) / count,
            static_cast<double>(cpu_end - cpu) / count};
  }

  // Makes every page present, where the file is as where it is mapped.
  void warm_up(Way& way, std::uint64_t begin) {
    for (std::uint64_t at = 0; at < options_.region_bytes; at += large_bytes) {
      way.write(begin + at, buffer_.data(), static_cast<int>(large_bytes));
      way.read(begin + at, buffer_.data(), static_cast<int>(large_bytes));
    }
  }

 private:
  const Options& options_;
  std::vector<char> buffer_;
  std::map<std::tuple<std::string, bool, int>, Course> courses_;
};

void print(const Way& way, const Operation& operation, const char* target, int round,
           const Taken& taken) {
  std::printf(
      "{\"way\": \"%s\", \"operation\": \"%s\", \"order\": \"%s\", \"bytes\": %d, "
      "\"target\": \"%s\", \"round\": %d, \"wall_ns\": %.2f, \"cpu_ns\": %.2f}\n",
      way.name().c_str(), operation.write ? "write" : "read", operation.random ? "random" : "seq",
      operation.bytes, target, round, taken.wall_ns, taken.cpu_ns);
}

Taken mean_of_ranks(const Taken& own) {
  const std::array<double, 2> mine = {own.wall_ns / 2, own.cpu_ns / 2};
  std::array<double, 2> sum{};
  MPI_Allreduce(mine.data(), sum.data(), 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return {sum[0], sum[1]};
}

std::string own_path(const std::string& directory, const char* name) {
  return directory + "/" + name + "." + std::to_string(rank);
}

std::unique_ptr<Way> cached_way(const Options& options, bool on_two_nodes) {
  Hints hints = {{"perdure_cache", "on"},
                 {"perdure_cache_directory", options.memory + "/pool"},
                 {"perdure_cache_from", "0"}};
  if (on_two_nodes) hints.emplace_back("perdure_cache_layout", "parts");
  return std::make_unique<MpiFileWay>("cached", options.memory + "/cached",
                                      2 * options.region_bytes, hints);
}

std::vector<std::unique_ptr<Way>> local_ways(const Options& options) {
  const std::uint64_t bytes = 2 * options.region_bytes;
  std::vector<std::unique_ptr<Way>> ways;
  const Hints off = {{"perdure_cache", "off"}};
  ways.push_back(cached_way(options, false));
  ways.push_back(std::make_unique<MappedWay>(own_path(options.memory, "mapped"), bytes));
  ways.push_back(std::make_unique<OrderedWay>(own_path(options.memory, "ordered"), bytes));
  ways.push_back(std::make_unique<PosixWay>("posix-tmpfs", own_path(options.memory, "posix")));
  ways.push_back(std::make_unique<PosixWay>("posix-disk", own_path(options.disk, "posix")));
  const std::array<std::pair<const char*, std::string>, 3> stock = {
      std::pair{"mpiio-tmpfs", options.memory},
      {"mpiio-disk", options.disk},
      {"mpiio-gluster", options.gluster}};
  for (const auto& [name, directory] : stock) {
    if (directory.empty()) continue;
    ways.push_back(std::make_unique<MpiFileWay>(name, directory + "/stock", bytes, off));
  }
  return ways;
}

// So many that a batch takes some milliseconds.
int local_count(const Way& way, const Operation& operation) {
  const bool large = operation.bytes == static_cast<int>(large_bytes);
  if (way.name() == "mpiio-gluster") return large ? 2 : 40;
  if (large) return 8;
  const bool loads = way.name() == "cached" || way.name().starts_with("mapped");
  return (operation.bytes == 4096 ? 1000 : 2000) * (loads ? 5 : 1) / (operation.write ? 2 : 1);
}

void measure_local(const Options& options) {
  Bench bench(options);
  auto ways = local_ways(options);
  const std::uint64_t begin = static_cast<std::uint64_t>(rank) * options.region_bytes;
  for (auto& way : ways) bench.warm_up(*way, begin);
  for (int round = 0; round < options.rounds; ++round) {
    for (const Operation& operation : all_operations()) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        Way& way = *ways[(i + static_cast<std::size_t>(round)) % ways.size()];
        MPI_Barrier(MPI_COMM_WORLD);
        const Taken taken =
            mean_of_ranks(bench.run_batch(way, operation, begin, local_count(way, operation)));
        if (rank == 0) print(way, operation, "", round, taken);
      }
    }
  }
}

// Rank 1 computes until rank 0 says that it is done, with a word that both have mapped.
class Computing {
 public:
  explicit Computing(const Options& options) {
    const std::string path = options.memory + "/word";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && ::ftruncate(fd, 4096) == 0, "making " + path);
    void* base = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(base != MAP_FAILED, "mapping " + path);
    ::close(fd);
    done_ = new (base) std::atomic<int>(0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void end() { done_->store(1); }
  void compute() {
    while (done_->load() == 0) {
      const std::uint64_t end = clock_ns(CLOCK_MONOTONIC) + computing_ns;
      while (clock_ns(CLOCK_MONOTONIC) < end && done_->load() == 0) {
      }
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  }

 private:
  std::atomic<int>* done_;
};

int remote_count(const Way& way, const Operation& operation, bool computing) {
  if (computing && way.name() == "mpi-rma") return 1;
  return operation.bytes == static_cast<int>(large_bytes) ? 4 : 100;
}

void measure_rounds(const Options& options, Bench& bench, std::array<Way*, 2> ways,
                    bool computing) {
  for (int round = 0; round < options.rounds; ++round) {
    for (const Operation& operation : all_operations()) {
      for (Way* way : ways) {
        // The cached file's second half is on rank 1's node.
        const std::uint64_t begin = way->name() == "cached" ? options.region_bytes : 0;
        const int count = remote_count(*way, operation, computing);
        const Taken taken = bench.run_batch(*way, operation, begin, count);
        print(*way, operation, computing ? "computes" : "in-mpi", round, taken);
      }
      std::swap(ways[0], ways[1]);
    }
  }
}

void measure_remote(const Options& options) {
  Bench bench(options);
  const auto cached = cached_way(options, true);
  MappedWay memory(own_path(options.memory, "mapped"), options.region_bytes);
  bench.warm_up(memory, 0);
  bench.warm_up(*cached, static_cast<std::uint64_t>(rank) * options.region_bytes);
  RmaWay rma(memory, options.region_bytes);
  Computing computing(options);
  const std::array<Way*, 2> ways = {cached.get(), &rma};
  if (rank == 0) measure_rounds(options, bench, ways, false);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    measure_rounds(options, bench, ways, true);
    computing.end();
  } else {
    computing.compute();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Nanoseconds that the threads of this process but the first have run, and how many they are.
std::pair<std::uint64_t, int> others_cpu() {
  std::uint64_t sum = 0;
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(::getpid())) continue;
    std::uint64_t ran_ns = 0;
    std::ifstream(entry.path() / "schedstat") >> ran_ns;
    sum += ran_ns;
    ++threads;
  }
  return {sum, threads};
}

void measure_idle(const Options& options) {
  const auto cached = cached_way(options, true);
  std::vector<char> bytes(large_bytes);
  cached->read(static_cast<std::uint64_t>(1 - rank) * options.region_bytes, bytes.data(), 8);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto before = others_cpu();
  ::sleep(idle_s);
  const auto after = others_cpu();
  double fraction = static_cast<double>(after.first - before.first) / (idle_s * 1e9);
  MPI_Allreduce(MPI_IN_PLACE, &fraction, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("{\"idle\": %.6f, \"threads\": %d}\n", fraction, after.second);
}

// Before MPI begins: the ranks take each other for processes of two nodes.
void pretend_nodes() {
  const char* own = std::getenv("PMI_RANK");
  if (own == nullptr) own = std::getenv("OMPI_COMM_WORLD_RANK");
  if (own != nullptr) ::setenv("PERDURE_NODE_ID", own, 1);
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  using perdure::bench::Words;
  Words words("What accesses to files cost two ranks");
  words.one_of({"local", "remote", "idle"}, "mode", options.mode, "where the files are",
               Words::Need::required);
  words.text("--memory", options.memory, "a directory in memory", Words::Need::required);
  words.text("--disk", options.disk, "a directory on a disk");
  words.text("--gluster", options.gluster, "a directory of a parallel file system");
  words.number("--rounds", options.rounds, "of each operation", 1);
  words.number("--region-bytes", options.region_bytes, "of the file that is accessed");
  if (const auto code = words.parse(argc, argv)) return *code;
  if (options.mode != "local") pretend_nodes();
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(ranks == 2, "running on two ranks");
  if (options.mode == "local") measure_local(options);
  if (options.mode == "remote") measure_remote(options);
  if (options.mode == "idle") measure_idle(options);
  MPI_Finalize();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_file_operations: %s\n", error.what());
  return 1;
}
