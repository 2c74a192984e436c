// SPDX-License-Identifier: BSD-3-Clause
//
// bench_memsim: how fast the memory simulator reads a trace and replays it, on one core.
//
// Cases: `lru`, one run with half of the pages resident, and `all-capacities`, one pass for every
// capacity, faults and write-backs. Metrics: accesses_per_s (accesses that the trace stands for, of
// CPU time, reading included; what the issue claims), records_per_s (what the simulator handled),
// bytes_per_page (of the simulator, above what it has at the start). Traces: Zipf with exponent 1,
// and a loop, over 100,000 pages each, one access a reference; and a file, if one is given. A trace
// of Zipf or of a loop is in a file, whole and reduced as a recorder reduces it.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/fact.hpp"
#include "sim/run.hpp"
#include "sim/sweep.hpp"
#include "trace/reader.hpp"
#include "trace/writer.hpp"
#include "words.hpp"

namespace perdure {
namespace {

constexpr double lru_target = 100e6;
constexpr double sweep_target = 20e6;
constexpr double bytes_target = 64;
constexpr std::uint32_t pages = 100000;
constexpr std::uint32_t reduction = 256;  // pages: 1 MB

struct Options {
  bool quick = false;
  std::string trace;
  std::string directory = "/dev/shm";
  int repetitions = 0;
};

struct Trace {
  std::string name;
  std::string path;
};

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Status write_trace(const std::string& path, std::uint64_t accesses, std::uint32_t floor_pages,
                   const std::function<std::uint64_t(std::uint64_t)>& page_of) {
  trace::Header header;
  header.floor_pages = floor_pages;
  header.mode = trace::FilterMode::none;
  PERDURE_TRY_ASSIGN(auto writer, trace::Writer::create(path, header));
  for (std::uint64_t i = 0; i < accesses; ++i) {
    const bool is_write = i * 0x9e3779b97f4a7c15U >> 62U == 0;  // a quarter
    writer->append(page_of(i), is_write ? 0 : 1, is_write ? 1 : 0);
  }
  return writer->finish({.program_accesses = accesses, .compute_ns = 1});
}

std::size_t heap_bytes() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

struct Rate {
  std::uint64_t accesses = 0;
  std::uint64_t records = 0;
  std::uint64_t pages = 0;
};

Result<Rate> run_lru(trace::Reader& reader,
                     const std::function<bool(const sim::Progress&)>& watch) {
  PERDURE_TRY_ASSIGN(auto totals, reader.totals());
  sim::Configuration configuration;
  PERDURE_TRY_ASSIGN(configuration.devices, sim::devices_of_preset("hosogaya2008"));
  const std::uint64_t frames =
      std::max<std::uint64_t>(totals->pages.size() / 2, std::max(reader.header().floor_pages, 1U));
  configuration.dram_bytes = frames * reader.header().page_bytes;
  configuration.progress = watch;
  PERDURE_TRY_ASSIGN(const sim::Outcome done, sim::run(reader, configuration));
  return Rate{done.counters.accesses(), done.records, done.pages};
}

Result<Rate> run_sweep(trace::Reader& reader,
                       const std::function<bool(const sim::Progress&)>& watch) {
  sim::SweepConfiguration configuration;
  configuration.progress = watch;
  PERDURE_TRY_ASSIGN(auto curves, sim::sweep(reader, configuration));
  return Rate{curves.accesses, curves.records, curves.curves[0].pages};
}

using Case = Result<Rate> (*)(trace::Reader&, const std::function<bool(const sim::Progress&)>&);

// A case of a trace, and what was measured.
struct Measured {
  Trace trace;
  const char* name;
  Case run;
  double target;
  std::vector<double> accesses_per_s = {};
  std::vector<double> records_per_s = {};
  std::uint64_t pages = 0;
  double bytes = 0;
};

// Memory is looked at in a run of its own, as looking costs time.
Status measure_memory(Measured& measured) {
  const std::size_t before = heap_bytes();
  std::size_t most = before;
  PERDURE_TRY_ASSIGN(auto reader, trace::Reader::open(measured.trace.path));
  PERDURE_TRY_ASSIGN(const Rate rate, measured.run(*reader, [&](const sim::Progress&) {
    most = std::max(most, heap_bytes());
    return true;
  }));
  measured.bytes = static_cast<double>(most - before);
  measured.pages = rate.pages;
  return Status::success();
}

Status measure_rate(Measured& measured) {
  const double begin = cpu_seconds();
  PERDURE_TRY_ASSIGN(auto reader, trace::Reader::open(measured.trace.path));
  PERDURE_TRY_ASSIGN(const Rate rate, measured.run(*reader, {}));
  const double seconds = cpu_seconds() - begin;
  measured.accesses_per_s.push_back(static_cast<double>(rate.accesses) / seconds);
  measured.records_per_s.push_back(static_cast<double>(rate.records) / seconds);
  return Status::success();
}

void report(const Measured& measured) {
  const auto fact_of = [&](const char* metric, const char* unit, std::vector<double> samples) {
    Fact fact{.bench = "memsim", .name = measured.name, .metric = metric, .unit = unit};
    fact.more = {{"trace", measured.trace.name},
                 {"pages", static_cast<std::int64_t>(measured.pages)}};
    return of_samples(std::move(fact), std::move(samples));
  };
  print_fact(at_least(measured.target, fact_of("accesses_per_s", "1/s", measured.accesses_per_s)));
  print_fact(fact_of("records_per_s", "1/s", measured.records_per_s));
  const auto pages_seen = static_cast<double>(std::max<std::uint64_t>(measured.pages, 1));
  // A constant of 4 MB, for frames of the trace, is no matter of its pages.
  print_fact(at_most(bytes_target + 4e6 / pages_seen,
                     fact_of("bytes_per_page", "B", {measured.bytes / pages_seen})));
}

Status measure(const Options& options, const std::vector<Trace>& traces) {
  std::vector<Measured> all;
  for (const Trace& trace : traces) {
    all.push_back({trace, "lru", run_lru, lru_target});
    all.push_back({trace, "all-capacities", run_sweep, sweep_target});
  }
  const int repetitions = options.repetitions > 0 ? options.repetitions : options.quick ? 3 : 9;
  for (int i = 0; i <= repetitions; ++i) {  // interleaved; the first one warms up
    for (Measured& each : all) PERDURE_TRY(i == 0 ? measure_memory(each) : measure_rate(each));
  }
  for (const Measured& each : all) report(each);
  return Status::success();
}

// Synthetic traces, in files of this process, which are removed at the end.
Status make_traces(const Options& options, std::vector<Trace>& traces) {
  const std::uint64_t accesses = options.quick ? 10000000 : 40000000;
  const std::string begin = options.directory + "/perdure-memsim-" + std::to_string(::getpid());
  std::vector<double> weights(pages);  // of ranks, by Zipf
  for (std::uint32_t i = 0; i < pages; ++i) weights[i] = 1.0 / (i + 1.0);
  for (const std::uint32_t floor : {0U, reduction}) {
    const std::string kind = floor == 0 ? "" : ", reduced";
    traces.push_back({"zipf" + kind, begin + "-zipf-" + std::to_string(floor)});
    std::mt19937_64 random(1);
    std::discrete_distribution<std::uint64_t> rank(weights.begin(), weights.end());
    PERDURE_TRY(write_trace(traces.back().path, accesses, floor, [&](std::uint64_t) {
      return rank(random) * 0x9e3779b1U % pages;  // hot pages are anywhere
    }));
    traces.push_back({"loop" + kind, begin + "-loop-" + std::to_string(floor)});
    PERDURE_TRY(write_trace(traces.back().path, accesses, floor,
                            [](std::uint64_t i) { return i % pages; }));
  }
  return Status::success();
}

int run_bench(const Options& options) {
  std::vector<Trace> traces;
  Status status = make_traces(options, traces);
  const std::size_t own = traces.size();
  if (!options.trace.empty()) traces.push_back({options.trace, options.trace});
  if (status.ok()) status = measure(options, traces);
  for (std::size_t i = 0; i < own; ++i) std::remove(traces[i].path.c_str());
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_memsim: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) try {
  perdure::Options options;
  perdure::bench::Words words(
      "How fast the memory simulator reads and replays a trace, as JSON lines.");
  words.flag("--quick", options.quick, "shorter traces and fewer repetitions");
  words.text("--trace", options.trace, "a recorded trace to measure too");
  words.text("--directory", options.directory, "for the synthetic traces");
  words.number("--repetitions", options.repetitions, "of each measurement; 0: 9, or 3 if quick");
  if (const auto code = words.parse(argc, argv)) return *code;
  return perdure::run_bench(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_memsim: %s\n", error.what());
  return 1;
}
