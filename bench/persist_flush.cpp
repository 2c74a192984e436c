// SPDX-License-Identifier: BSD-3-Clause
//
// What one line costs to flush, by instruction and by the state of the line: the
// in-place-versioning paper's table 1 (one thread), and its figure 5 (20 MB of dirty lines, several
// threads).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

#include "persist.hpp"
#include "pmem/flush.hpp"
#include "pmem/parallel.hpp"

namespace perdure::bench {
namespace {

constexpr std::size_t figure5_bytes = std::size_t{20} << 20U;

enum class LineState { dirty, clean, uncached };
constexpr LineState states[] = {LineState::dirty, LineState::clean, LineState::uncached};
constexpr const char* names[] = {"dirty", "clean", "uncached"};

// Reads a word of every line, so that it is cached.
std::uint64_t read_lines(const std::byte* begin, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < count; at += cache_line_bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, begin + at, sizeof word);
    sum += word;
  }
  return sum;
}

// Brings all lines of [begin, begin + count) into the state, as far as the caches hold them.
void prepare(std::byte* begin, std::size_t count, LineState state, int round) {
  if (state == LineState::dirty) {
    std::memset(begin, round, count);
    return;
  }
  evict(begin, count);
  if (state == LineState::uncached) return;
  // The sum is used, or the compiler would leave out the reads.
  if (read_lines(begin, count) == 1) std::memset(begin, 0, 1);
}

// The clock of /proc/cpuinfo in GHz; 0 where it gives none. Its rate is the nominal one on virtual
// machines, so cycles are those of the time stamp counter, as in the paper.
double clock_ghz() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("cpu MHz", 0) == 0) return std::stod(line.substr(line.find(':') + 1)) / 1000;
  }
  return 0;
}

void report(const std::string& name, const std::vector<double>& ns_per_line, std::size_t size,
            unsigned threads) {
  Fact cycles = fact_of(name, "cycles_per_line", "cycles", size, threads);
  std::vector<double> converted;
  const double ghz = clock_ghz();
  for (const double ns : ns_per_line) {
    if (ghz > 0) converted.push_back(ns * ghz);
  }
  if (ghz == 0) cycles.more.emplace_back("absent", "/proc/cpuinfo gives no clock rate");
  print_fact(of_samples(fact_of(name, "ns_per_line", "ns", size, threads), ns_per_line));
  print_fact(of_samples(cycles, converted));
}

Status measure_one(Device& memory, const FlushPrimitives& primitives, std::size_t size,
                   unsigned threads, int repetitions) {
  const auto device =
      device_with_verbs(memory, {primitives.copy, primitives.flush, primitives.fence});
  ParallelWriter writer(*device, threads);
  std::vector<double> ns_per_line[std::size(states)];
  for (int round = -1; round < repetitions; ++round) {  // the first one only warms up
    for (std::size_t i = 0; i < std::size(states); ++i) {
      prepare(memory.base(), size, states[i], round);
      PERDURE_TRY_ASSIGN(const double ns, nanoseconds_of([&]() -> Status {
                           PERDURE_TRY(writer.flush(0, size));
                           return device->fence();
                         }));
      const std::size_t lines = size / cache_line_bytes;
      if (round >= 0) ns_per_line[i].push_back(ns / static_cast<double>(lines));
    }
  }
  for (std::size_t i = 0; i < std::size(states); ++i) {
    report("flush/" + std::string(primitives.flush_name) + "/" + names[i], ns_per_line[i], size,
           threads);
  }
  return Status::success();
}

std::vector<std::size_t> sizes_of(const PersistOptions& options) {
  if (options.quick) return {std::size_t{64} << 10U, std::size_t{1} << 20U, figure5_bytes};
  std::vector<std::size_t> sizes = {figure5_bytes};
  for (std::size_t size = std::size_t{64} << 10U; size <= options.largest_bytes; size *= 4) {
    sizes.push_back(size);
  }
  return sizes;
}

int repetitions_of(std::size_t size, bool quick) {
  if (size >= std::size_t{64} << 20U) return 5;
  return size >= std::size_t{4} << 20U ? (quick ? 5 : 15) : (quick ? 21 : 101);
}

}  // namespace

Status measure_flushes(const PersistOptions& options) {
  const std::vector<std::size_t> sizes = sizes_of(options);
  PERDURE_TRY_ASSIGN(auto memory,
                     open_scratch(options, *std::max_element(sizes.begin(), sizes.end())));
  for (const char* name : {"clflush", "clflushopt", "clwb", "dc cvac", "dc cvap"}) {
    const FlushPrimitives* primitives = flush_primitives_named(name);
    if (primitives == nullptr) {
      // A fact has a value, so what is missing is reported apart from the facts.
      std::fprintf(stderr, "bench_persist: this processor lacks %s\n", name);
      continue;
    }
    for (const std::size_t size : sizes) {
      for (const unsigned threads : options.threads) {
        PERDURE_TRY(
            measure_one(*memory, *primitives, size, threads, repetitions_of(size, options.quick)));
      }
    }
  }
  return Status::success();
}

}  // namespace perdure::bench
