#include "sweep.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <memory>
#include <thread>

#include "small_job.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t device_bytes_max = 4096;

using Image = std::vector<std::byte>;

std::unique_ptr<CrashDevice> new_device(const SweepOptions& options) {
  return std::make_unique<CrashDevice>(device_bytes_max, options.line_bytes);
}

// The versions that the job went through; version 0 is the empty pool.
std::vector<JobState> history_of(std::uint64_t versions, std::uint32_t rank) {
  JobState start;
  start.a.resize(a_words);
  start.b.resize(b_words);
  std::vector<JobState> history{start};
  for (std::uint64_t v = 1; v <= versions; ++v) {
    history.push_back(next_state(history.back(), v, rank));
  }
  return history;
}

struct Bounds {
  std::uint64_t acknowledged;  // commit(v) has returned on some rank
  std::uint64_t begun;         // some rank has begun to commit v
};

class Judge {
 public:
  Judge(const SweepOptions& options, SweepResult& result) : options_(options), result_(result) {}

  void complain(const std::string& what) {
    if (result_.wrong++ == 0) result_.first_wrong = what;
  }

  // P1 for one rank: the bytes of one version, not older than acknowledged, not newer than begun.
  void check(const Result<std::uint64_t>& restored, const JobState& state,
             const std::vector<JobState>& history, const Bounds& bounds) {
    if (!restored.ok()) return complain("recovery failed: " + restored.status().message());
    const std::uint64_t version = restored.value();
    if (version < bounds.acknowledged || version > bounds.begun) {
      return complain("version " + std::to_string(version) + " came back, but " +
                      std::to_string(bounds.acknowledged) + " was acknowledged and " +
                      std::to_string(bounds.begun) + " the last begun");
    }
    if (!(state == history[version])) {
      complain("version " + std::to_string(version) + " came back with other contents");
    }
  }

 private:
  const SweepOptions& options_;
  SweepResult& result_;
};

class OneRankSweep {
 public:
  explicit OneRankSweep(const SweepOptions& options)
      : options_(options),
        judge_(options, result_),
        history_(history_of(options.versions + 1, 0)) {}

  SweepResult run() {
    auto device = new_device(options_);
    device->on_fence = [this](CrashDevice& d) { crash_here(d); };
    SoloGroup group;
    SmallJob job(std::move(device), group, options_);
    auto started = job.start();
    if (!started.ok()) {
      judge_.complain("the job can't start: " + started.status().message());
      return result_;
    }
    pool_exists_ = true;
    for (std::uint64_t v = 1; v <= options_.versions; ++v) {
      bounds_.begun = v;
      auto committed = job.commit(history_[v]);
      if (!committed.ok() || committed.value() != v) {
        judge_.complain("commit " + std::to_string(v) + " failed");
      }
      bounds_.acknowledged = v;
    }
    return result_;
  }

 private:
  // Before the pool was made there is nothing to come back; making it again is the caller's.
  void crash_here(CrashDevice& device) {
    ++result_.fences;
    if (!pool_exists_) return;
    const auto count = device.for_each_image(
        options_.model, options_.images_per_fence, options_.seed + result_.fences,
        [this](std::span<const std::byte> image) { recover(image); });
    if (!count.exhaustive) ++result_.sampled;
  }

  void recover(std::span<const std::byte> image) {
    ++result_.images;
    auto device = new_device(options_);
    CrashDevice& medium = *device;
    device->load(image);
    const auto due = [this, n = result_.images](std::uint64_t every) {
      return every != 0 && n % every == 0;
    };
    const bool continues = due(options_.continue_every);
    if (due(options_.recrash_every)) {
      device->on_fence = [this](CrashDevice& d) {
        d.for_each_image(options_.model, 64, options_.seed,
                         [this](std::span<const std::byte> again) { recover_again(again); });
      };
    }
    SoloGroup group;
    SmallJob job(std::move(device), group, options_);
    const auto restored = job.start();
    judge_.check(restored, restored.ok() ? job.consistent() : JobState{}, history_, bounds_);
    medium.on_fence = nullptr;
    if (restored.ok() && continues) go_on(job, restored.value());
  }

  void recover_again(std::span<const std::byte> image) {
    ++result_.images;
    auto device = new_device(options_);
    device->load(image);
    SoloGroup group;
    SmallJob job(std::move(device), group, options_);
    const auto restored = job.start();
    judge_.check(restored, restored.ok() ? job.consistent() : JobState{}, history_, bounds_);
  }

  void go_on(SmallJob& job, std::uint64_t restored) {
    const JobState& next = history_[restored + 1];
    const auto committed = job.commit(next);
    if (!committed.ok() || committed.value() != restored + 1 || !(job.consistent() == next)) {
      judge_.complain("the job could not go on from version " + std::to_string(restored));
    }
  }

  SweepOptions options_;
  SweepResult result_;
  Judge judge_;
  std::vector<JobState> history_;
  Bounds bounds_{0, 0};
  bool pool_exists_ = false;
};

// Two ranks as threads. Records, for each rank, what a crash could leave at each of its events: a
// fence, or the entry to an agreement.
class PairGroup;

struct Event {
  std::uint64_t passed;   // agreements that this rank had left
  std::uint64_t entered;  // agreements that this rank had entered
  Bounds bounds;          // as this rank knows them
  std::vector<Image> images;
};

struct PairExchange {
  std::barrier<> barrier{2};
  std::array<std::vector<std::uint64_t>, 2> values;
};

class PairGroup final : public Group {
 public:
  PairGroup(PairExchange& exchange, std::uint32_t rank) : exchange_(exchange), rank_(rank) {}
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return 2; }
  Status all_max(std::span<std::uint64_t> values) override {
    ++entered;
    if (on_enter) on_enter();
    exchange_.values[rank_].assign(values.begin(), values.end());
    exchange_.barrier.arrive_and_wait();
    const auto& other = exchange_.values[1 - rank_];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], other[i]);
    exchange_.barrier.arrive_and_wait();
    ++passed;
    return Status::success();
  }

  std::uint64_t entered = 0;
  std::uint64_t passed = 0;
  std::function<void()> on_enter;

 private:
  PairExchange& exchange_;
  std::uint32_t rank_;
};

class RecordedRank {
 public:
  RecordedRank(const SweepOptions& options, PairExchange& exchange, std::uint32_t rank)
      : options_(options), group_(exchange, rank), history_(history_of(options.versions, rank)) {}

  void run() {
    auto device = new_device(options_);
    CrashDevice& medium = *device;
    device->on_fence = [this](CrashDevice& d) { record(d); };
    group_.on_enter = [this, &medium] { record(medium); };
    SmallJob job(std::move(device), group_, options_);
    if (!job.start().ok()) return;
    recording_ = true;
    for (std::uint64_t v = 1; v <= options_.versions; ++v) {
      bounds_.begun = v;
      if (!job.commit(history_[v]).ok()) return;
      bounds_.acknowledged = v;
      record(medium);
    }
    finished = true;
  }

  std::vector<Event> events;
  std::uint64_t sampled = 0;
  bool finished = false;

 private:
  void record(CrashDevice& device) {
    if (!recording_) return;
    Event event{group_.passed, group_.entered, bounds_, {}};
    const auto count = device.for_each_image(
        options_.model, options_.images_per_fence, options_.seed + events.size(),
        [&event](std::span<const std::byte> image) {
          event.images.emplace_back(image.begin(), image.end());
        });
    if (!count.exhaustive) ++sampled;
    events.push_back(std::move(event));
  }

  const SweepOptions& options_;
  PairGroup group_;
  std::vector<JobState> history_;
  Bounds bounds_{0, 0};
  bool recording_ = false;
};

bool consistent_cut(const Event& one, const Event& other) {
  return one.passed <= other.entered && other.passed <= one.entered;
}

struct Recovery {
  Result<std::uint64_t> restored = Status(Code::not_found, "not run");
  JobState state;
};

void recover_rank(const SweepOptions& options, PairExchange& exchange, std::uint32_t rank,
                  const Image& image, Recovery& recovery) {
  auto device = new_device(options);
  device->load(image);
  PairGroup group(exchange, rank);
  SmallJob job(std::move(device), group, options);
  recovery.restored = job.start();
  if (recovery.restored.ok()) recovery.state = job.consistent();
}

class PairSweep {
 public:
  explicit PairSweep(const SweepOptions& options) : options_(options), judge_(options, result_) {}

  SweepResult run() {
    PairExchange exchange;
    RecordedRank zero(options_, exchange, 0);
    RecordedRank one(options_, exchange, 1);
    std::thread thread([&one] { one.run(); });
    zero.run();
    thread.join();
    if (!zero.finished || !one.finished) judge_.complain("the undisturbed run failed");
    result_.fences = zero.events.size() + one.events.size();
    result_.sampled = zero.sampled + one.sampled;
    for (const Event& e0 : zero.events) {
      for (const Event& e1 : one.events) {
        if (consistent_cut(e0, e1)) crash_at(e0, e1);
      }
    }
    return result_;
  }

 private:
  // Each image of one rank meets one of the other, all of both at least once.
  void crash_at(const Event& e0, const Event& e1) {
    const Bounds bounds{std::max(e0.bounds.acknowledged, e1.bounds.acknowledged),
                        std::max(e0.bounds.begun, e1.bounds.begun)};
    const std::size_t pairs = std::max(e0.images.size(), e1.images.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      recover(e0.images[i % e0.images.size()], e1.images[(i * 7 + i / 3) % e1.images.size()],
              bounds);
    }
  }

  void recover(const Image& image0, const Image& image1, const Bounds& bounds) {
    ++result_.images;
    PairExchange exchange;
    std::array<Recovery, 2> recoveries;
    std::thread thread([&] { recover_rank(options_, exchange, 1, image1, recoveries[1]); });
    recover_rank(options_, exchange, 0, image0, recoveries[0]);
    thread.join();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      judge_.check(recoveries[rank].restored, recoveries[rank].state,
                   history_of(options_.versions, rank), bounds);
    }
    if (recoveries[0].restored.ok() && recoveries[1].restored.ok() &&
        recoveries[0].restored.value() != recoveries[1].restored.value()) {
      judge_.complain("the ranks came back with different versions");
    }
  }

  SweepOptions options_;
  SweepResult result_;
  Judge judge_;
};

}  // namespace

SweepResult sweep_one_rank(const SweepOptions& options) {
  return OneRankSweep(options).run();
}

SweepResult sweep_two_ranks(const SweepOptions& options) {
  return PairSweep(options).run();
}

}  // namespace perdure
