// SPDX-License-Identifier: BSD-3-Clause
//
// What log mode costs where few pages change: a commit of k pages over a memcpy of the same pages,
// and the first store to each, by both trackers in turn. The pages follow each other, or are
// scattered; they are the same in each version, so that a commit copies k of them.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "base/clock.hpp"
#include "base/group.hpp"
#include "persist.hpp"
#include "pmem/file_device.hpp"
#include "pool/pool.hpp"

namespace perdure::bench {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr double commit_over_memcpy_max = 2.0;

// A pool with one array whose changes a tracker finds.
class Tracked {
 public:
  Tracked(const PersistOptions& options, TrackerKind kind, std::size_t array_bytes)
      : path_(options.directory + "/perdure-bench-sparse-" + std::to_string(::getpid()) + "-" +
              name_of(kind)),
        name_(name_of(kind)),
        kind_(kind),
        bytes_(array_bytes) {}
  ~Tracked() { ::unlink(path_.c_str()); }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;

  const std::string& name() const { return name_; }
  std::byte* at() { return array_->working(); }

  Status open() {
    PERDURE_TRY_ASSIGN(auto device, open_file_device(path_, {.create = true}));
    PERDURE_TRY_ASSIGN(const auto region, format_region(*device, {{{1, 2}}, "bench", 0, 1}, {}));
    PERDURE_TRY(format_slots(*device, region));
    PERDURE_TRY_ASSIGN(pool_, Pool::attach(std::move(device), region, group_, {}));
    ArrayOptions options;
    options.tracker = kind_;
    PERDURE_TRY_ASSIGN(
        array_, pool_->open_array("u", {ArrayType::byte, ArrayMode::log, true, {bytes_}}, options));
    PERDURE_TRY(pool_->restart().status());
    for (int i = 0; i < 2; ++i) PERDURE_TRY(commit());
    return Status::success();
  }
  Status commit() { return pool_->commit().status(); }

 private:
  static std::string name_of(TrackerKind kind) {
    return kind == TrackerKind::kernel ? "kernel" : "faults";
  }

  std::string path_;
  std::string name_;
  TrackerKind kind_;
  std::size_t bytes_;
  SoloGroup group_;
  std::unique_ptr<Pool> pool_;
  VersionedArray* array_ = nullptr;
};

struct Samples {
  std::vector<double> ratios;
  std::vector<double> commits_ns;
  std::vector<double> stores_ns;  // each
};

struct Case {
  std::size_t divisor;
  bool scattered;
  std::vector<std::size_t> pages;
};

class Sparse {
 public:
  explicit Sparse(const PersistOptions& options)
      : options_(options),
        bytes_(options.quick ? std::size_t{64} << 20U : std::size_t{256} << 20U),
        rounds_(options.quick ? 5 : 15) {}

  Status measure() {
    PERDURE_TRY_ASSIGN(copy_, open_scratch(options_, bytes_));
    std::memset(copy_->base(), 1, bytes_);
    for (const std::size_t divisor : {8U, 64U, 1024U}) {
      for (const bool scattered : {false, true}) {
        PERDURE_TRY(measure_case(case_of(divisor, scattered)));
      }
    }
    return Status::success();
  }

 private:
  // Anew for each case: what changed before counts for some versions.
  Status open_both() {
    trackers_.clear();
    for (const TrackerKind kind : {TrackerKind::kernel, TrackerKind::faults}) {
      auto tracked = std::make_unique<Tracked>(options_, kind, bytes_);
      const Status opened = tracked->open();
      if (opened.code() == Code::unsupported) continue;  // an older kernel has one of them
      PERDURE_TRY(opened);
      trackers_.push_back(std::move(tracked));
    }
    return Status::success();
  }

  Case case_of(std::size_t divisor, bool scattered) {
    Case made{divisor, scattered, {}};
    std::vector<std::size_t> all(bytes_ / page_bytes);
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (scattered) std::shuffle(all.begin(), all.end(), random_);
    all.resize(all.size() / divisor);
    std::ranges::sort(all);  // as a sweep over the array meets them
    made.pages = std::move(all);
    return made;
  }

  static double store(std::byte* to, const Case& now, int value) {
    const std::uint64_t start_ns = monotonic_ns();
    for (const std::size_t page : now.pages) {
      const auto word = static_cast<std::uint64_t>(value) + page;
      std::memcpy(to + page * page_bytes + 8 * (page % 512), &word, sizeof word);
    }
    return static_cast<double>(monotonic_ns() - start_ns);
  }
  double copy_of_pages(const std::byte* from, const Case& now) {
    const std::uint64_t start_ns = monotonic_ns();
    for (const std::size_t page : now.pages) {
      std::memcpy(copy_->base() + page * page_bytes, from + page * page_bytes, page_bytes);
    }
    return static_cast<double>(monotonic_ns() - start_ns);
  }

  Status measure_round(Tracked& tracked, const Case& now, Samples& samples) {
    const auto stored_ns = store(tracked.at(), now, ++value_);
    PERDURE_TRY_ASSIGN(const double commit_ns, nanoseconds_of([&] { return tracked.commit(); }));
    (void)store(tracked.at(), now, ++value_);
    const double copied_ns = copy_of_pages(tracked.at(), now);
    PERDURE_TRY(tracked.commit());
    samples.ratios.push_back(commit_ns / copied_ns);
    samples.commits_ns.push_back(commit_ns);
    samples.stores_ns.push_back(stored_ns / static_cast<double>(now.pages.size()));
    return Status::success();
  }

  Status measure_case(const Case& now) {
    PERDURE_TRY(open_both());
    std::vector<Samples> samples(trackers_.size());
    for (int round = -2; round < rounds_; ++round) {
      if (round == 0) samples.assign(trackers_.size(), {});  // the first ones only prepare
      for (std::size_t i = 0; i < trackers_.size(); ++i) {
        PERDURE_TRY(measure_round(*trackers_[i], now, samples[i]));
      }
    }
    for (std::size_t i = 0; i < trackers_.size(); ++i) say(now, *trackers_[i], samples[i]);
    return Status::success();
  }

  void say(const Case& now, const Tracked& tracked, const Samples& samples) const {
    const auto fact = [&](const char* metric, const char* unit) {
      Fact made{.bench = "persist",
                .name = "sparse-" + std::to_string(now.divisor) +
                        (now.scattered ? "-scattered-" : "-ordered-") + tracked.name(),
                .metric = metric,
                .unit = unit};
      made.more = {{"size", static_cast<std::int64_t>(bytes_)},
                   {"pages", static_cast<std::int64_t>(now.pages.size())}};
      return made;
    };
    Fact ratio = of_samples(fact("commit_over_memcpy", "ratio"), samples.ratios);
    const bool claimed = tracked.name() == "kernel";
    print_fact(claimed ? at_most(commit_over_memcpy_max, std::move(ratio)) : ratio);
    print_fact(of_samples(fact("commit", "ns"), samples.commits_ns));
    print_fact(of_samples(fact("first_store", "ns"), samples.stores_ns));
  }

  PersistOptions options_;
  std::size_t bytes_;
  int rounds_;
  int value_ = 0;
  std::mt19937_64 random_{1};
  std::unique_ptr<Device> copy_;
  std::vector<std::unique_ptr<Tracked>> trackers_;
};

}  // namespace

Status measure_sparse(const PersistOptions& options) {
  return Sparse(options).measure();
}

}  // namespace perdure::bench
