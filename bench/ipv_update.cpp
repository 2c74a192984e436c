// SPDX-License-Identifier: BSD-3-Clause
//
// bench_ipv_update: the memory-bound update u += r with a version of u at every sweep, by each
// tier of in-place versioning and by hand-written loops, against the same update without versions.
// The update of tiers and the one without versions are one function (ipv_update_rows.c), compiled
// by perdure-clang with --ipv=all and as it is.
//
// All strategies take turns in one run, so that what disturbs the machine meets all; a sample is
// the time of an update and its version relative to the native update of the same round.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/fact.hpp"
#include "base/status.hpp"
#include "perdure/perdure.h"
#include "perdure/perdure_ipv.h"
#include "pmem/flush.hpp"
#include "pmem/region.hpp"
#include "words.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern "C" {
void update_native(double* u, const double* r, std::size_t rows, std::size_t columns);
void update_versioned(double* u, const double* r, std::size_t rows, std::size_t columns);
}

namespace perdure {
namespace {

std::size_t row_elements = 512;  // 4 KiB
constexpr double ratio_target = 1.15;
constexpr std::size_t claimed_from_mib = 128;

struct Options {
  std::vector<std::size_t> mib;
  std::string directory = "/dev/shm";
  std::string pages;
  int rounds = 0;
  bool quick = false;
  bool helper = false;
};

bool huge_pages = false;

using Tier = perdure_ipv_tier;
constexpr Tier tiers[] = {PERDURE_IPV_COPY, PERDURE_IPV_STREAM};
const char* name_of(Tier tier) {
  return tier == PERDURE_IPV_COPY ? "copy" : "stream";
}

// What is compared with has pages as large as the pool's.
template <typename T>
struct SamePages {
  using value_type = T;
  static constexpr std::size_t page_bytes = std::size_t{2} << 20U;
  static T* allocate(std::size_t count) {
    const std::size_t bytes = align_up(count * sizeof(T), page_bytes);
    void* memory = std::aligned_alloc(page_bytes, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (huge_pages) ::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  static void deallocate(T* memory, std::size_t /*count*/) { std::free(memory); }
  bool operator==(const SamePages&) const = default;
};
using Values = std::vector<double, SamePages<double>>;

// As a compiler makes it for this processor: rows don't overlap.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
void update_row(double* to, const double* from, const double* r, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] + r[i];
}

#if defined(__x86_64__)
constexpr bool has_streaming_stores = true;
void stream_row(double* to, const double* from, const double* r, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) {
    _mm_stream_pd(to + i, _mm_add_pd(_mm_loadu_pd(from + i), _mm_loadu_pd(r + i)));
  }
}
#else
constexpr bool has_streaming_stores = false;
void stream_row(double* to, const double* from, const double* r, std::size_t count) {
  update_row(to, from, r, count);
}
#endif

// The paper's dual version by hand: two arrays that change roles, flushed with one instruction, or
// stored past the cache.
class TwoArrays {
 public:
  explicit TwoArrays(std::size_t count) : u_{Values(count, 1.0), Values(count, 1.0)} {}
  void update(const Values& r, const FlushPrimitives* flush) {
    double* to = u_[1 - now_].data();
    const double* from = u_[now_].data();
    for (std::size_t at = 0; at < r.size(); at += row_elements) {
      (flush == nullptr ? stream_row : update_row)(to + at, from + at, r.data() + at, row_elements);
    }
    const FlushPrimitives& primitives = flush == nullptr ? flush_primitives() : *flush;
    if (flush != nullptr) primitives.flush(to, r.size() * sizeof(double));
    primitives.fence();
    now_ = 1 - now_;
  }

 private:
  Values u_[2];
  unsigned now_ = 0;
};

Status checked(int code) {
  return code == PERDURE_OK ? Status::success()
                            : Status(static_cast<Code>(code), perdure_last_error());
}

struct FreeObject {
  void operator()(double* u) const { perdure_ipv_free(u); }
};

// An object of each tier. One that a sweep leaves alone costs its version nothing.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> open(const Options& options, std::size_t count) {
    std::unique_ptr<Runtime> runtime(new Runtime(options));
    PERDURE_TRY(runtime->start(options, count));
    return runtime;
  }
  ~Runtime() {
    (void)perdure_ipv_close();
    if (pool_ != nullptr) (void)perdure_close(pool_);
    std::filesystem::remove_all(directory_);
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Status update(Tier tier, const Values& r) {
    update_versioned(u_.at(tier).get(), r.data(), r.size() / row_elements, row_elements);
    return checked(perdure_ipv_persist(nullptr));
  }
  static Result<Tier> tier(Tier asked) {
    perdure_ipv_object_status status{};
    PERDURE_TRY(checked(perdure_ipv_status(name_of(asked), &status)));
    return static_cast<Tier>(status.tier);
  }

 private:
  explicit Runtime(const Options& options)
      : directory_(options.directory + "/perdure-bench-ipv-" + std::to_string(::getpid())) {}

  Status start(const Options& options, std::size_t count) {
    PERDURE_TRY(checked(perdure_open(directory_.c_str(), nullptr, &pool_)));
    perdure_ipv_options ipv{};
    ipv.helper = options.helper ? 1 : -1;
    PERDURE_TRY(checked(perdure_ipv_open(pool_, &ipv)));
    for (const Tier tier : tiers) {
      const std::size_t bytes = count * sizeof(double);
      u_[tier].reset(static_cast<double*>(perdure_ipv_alloc(bytes)));
      if (u_[tier] == nullptr) return {Code::no_space, "there is no memory for an object"};
      std::fill_n(u_[tier].get(), count, 1.0);
      const perdure_ipv_object_options object{tier, 0};
      PERDURE_TRY(checked(perdure_ipv_object(name_of(tier), u_[tier].get(), bytes, &object)));
    }
    return checked(perdure_ipv_restart(nullptr));
  }

  std::string directory_;
  perdure_pool* pool_ = nullptr;
  std::map<Tier, std::unique_ptr<double, FreeObject>> u_;
};

struct Strategy {
  std::string name;
  bool ours;
  std::function<Status()> prepare;  // not timed
  std::function<Status()> update;   // one sweep, and its version
};

std::vector<Strategy> by_hand(TwoArrays& arrays, const Values& r) {
  std::vector<Strategy> all;
  const auto add = [&](const std::string& name, const FlushPrimitives* flush) {
    const auto update = [&arrays, &r, flush] {
      arrays.update(r, flush);
      return Status::success();
    };
    all.push_back({name, false, update, update});
  };
  for (const char* name : {"clwb", "clflushopt", "clflush", "dc cvap"}) {
    const FlushPrimitives* flush = flush_primitives_named(name);
    if (flush != nullptr) add(std::string("version-") + name, flush);
  }
  if (has_streaming_stores) add("version-nt", nullptr);
  return all;
}

std::vector<Strategy> of_the_runtime(Runtime& runtime, const Values& r) {
  std::vector<Strategy> all;
  for (const Tier tier : tiers) {
    const auto update = [&runtime, &r, tier] { return runtime.update(tier, r); };
    // The version of the sweep before is finished by the one that is timed, as in a program's loop.
    const auto prepare = [update, tier]() -> Status {
      PERDURE_TRY(update());
      PERDURE_TRY_ASSIGN(auto used, Runtime::tier(tier));
      if (used == tier) return Status::success();
      return {Code::unsupported, std::string("tier ") + name_of(tier) + " is not possible here"};
    };
    all.push_back({name_of(tier), true, prepare, update});
  }
  return all;
}

Result<double> timed(const std::function<Status()>& work) {
  const std::uint64_t start_ns = monotonic_ns();
  PERDURE_TRY(work());
  return static_cast<double>(monotonic_ns() - start_ns);
}

using Samples = std::map<std::string, std::vector<double>>;

// The native update is measured at the round's beginning and at its end.
Status measure_round(std::vector<Strategy>& strategies, Values& u, const Values& r, bool counts,
                     Samples& ratios, std::vector<double>& native_ns) {
  const auto native = [&] {
    const std::uint64_t start_ns = monotonic_ns();
    update_native(u.data(), r.data(), r.size() / row_elements, row_elements);
    return static_cast<double>(monotonic_ns() - start_ns);
  };
  std::map<std::string, double> spent;
  native();  // warm
  const double first = native();
  for (Strategy& strategy : strategies) {
    PERDURE_TRY(strategy.prepare());
    PERDURE_TRY_ASSIGN(spent[strategy.name], timed(strategy.update));
  }
  native();
  const double last = native();
  if (!counts) return Status::success();
  const double native_mean = (first + last) / 2;
  native_ns.push_back(native_mean);
  for (const auto& [name, ns] : spent) ratios[name].push_back(ns / native_mean);
  return Status::success();
}

// `what`: "-STRATEGY", or "MiB-PAGES" of the best.
void report(std::size_t mib, const std::string& what, const char* metric, const char* unit,
            std::vector<double> samples, bool claimed) {
  Fact fact{.bench = "ipv",
            .name = "update-" + std::to_string(mib) + what,
            .metric = metric,
            .unit = unit};
  fact.more.emplace_back("bytes", static_cast<std::int64_t>(mib << 20U));
  fact = of_samples(std::move(fact), std::move(samples));
  print_fact(claimed ? at_most(ratio_target, fact) : fact);
}

// The strategy of ours with the smallest median.
std::string best_of(const std::vector<Strategy>& strategies, const Samples& ratios) {
  std::string best;
  double least = 0;
  for (const Strategy& strategy : strategies) {
    if (!strategy.ours) continue;
    const double median = *of_samples({}, ratios.at(strategy.name)).value;
    if (!best.empty() && median >= least) continue;
    best = strategy.name;
    least = median;
  }
  return best;
}

Status measure_size(const Options& options, std::size_t mib) {
  const std::size_t count = (mib << 20U) / sizeof(double);
  Values u(count, 1.0);
  const Values r(count, 1e-9);
  TwoArrays arrays(count);
  PERDURE_TRY_ASSIGN(auto runtime, Runtime::open(options, count));
  std::vector<Strategy> strategies = by_hand(arrays, r);
  for (Strategy& each : of_the_runtime(*runtime, r)) strategies.push_back(std::move(each));
  Samples ratios;
  std::vector<double> native_ns;
  const int rounds = options.rounds > 0 ? options.rounds
                     : options.quick    ? (mib >= 64 ? 3 : 9)
                                        : (mib >= 64 ? 9 : 25);
  for (int round = -1; round < rounds; ++round) {
    PERDURE_TRY(measure_round(strategies, u, r, round >= 0, ratios, native_ns));
  }
  const double lines = static_cast<double>(mib << 20U) / cache_line_bytes;
  for (double& ns : native_ns) ns /= lines;
  report(mib, "-native", "ns_per_line", "ns", native_ns, false);
  for (const Strategy& strategy : strategies) {
    report(mib, "-" + strategy.name, "ratio_to_native", "", ratios[strategy.name], false);
  }
  const std::string best = best_of(strategies, ratios);
  report(mib, options.pages.empty() ? "-best" : "MiB-" + options.pages, "ratio_to_native", "",
         ratios[best], mib >= claimed_from_mib);
  return Status::success();
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) try {
  perdure::Options options;
  perdure::bench::Words words("u += r with a version at every sweep; one JSON line per fact");
  words.flag("--quick", options.quick, "fewer rounds and sizes: under a minute");
  words.numbers("--mib", options.mib, "sizes in MiB", 1, 65536);
  words.directory("--dir", options.directory, "directory of the pool");
  words.number("--rounds", options.rounds, "rounds of each size", 1, 10000);
  std::string row_kib = "4";
  words.one_of({"1", "2", "4", "8", "16", "32", "64"}, "--row", row_kib, "KiB of a row");
  words.flag("--helper", options.helper, "versions are made beside the program");
  words.text("--pages", options.pages, "name of DIR's pages: the best is update-MIB-PAGES");
  words.flag("--huge-pages", perdure::huge_pages,
             "of the arrays without a pool, as where DIR is a tmpfs of huge pages");
  if (const auto code = words.parse(argc, argv)) return *code;
  perdure::row_elements = (std::stoul(row_kib) << 10U) / sizeof(double);
  if (options.mib.empty() && options.quick) options.mib = {1, 16, 128};
  if (options.mib.empty()) options.mib = {1, 4, 16, 64, 128, 256, 512};
  for (const std::size_t mib : options.mib) {
    const perdure::Status status = perdure::measure_size(options, mib);
    if (status.ok()) continue;
    std::fprintf(stderr, "bench_ipv_update: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_ipv_update: %s\n", error.what());
  return 1;
}
