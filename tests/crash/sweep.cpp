// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>

#include "base/testing/thread_group.hpp"
#include "small_job.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t device_bytes_max = 8192;

using Image = std::vector<std::byte>;

std::unique_ptr<CrashDevice> new_device(const SweepOptions& options) {
  return std::make_unique<CrashDevice>(device_bytes_max, options.line_bytes);
}

// For an image that is recovered from and not crashed again.
std::unique_ptr<CrashDevice> device_of(const SweepOptions& options,
                                       std::span<const std::byte> image) {
  auto device = CrashDevice::unrecorded(device_bytes_max, options.line_bytes);
  device->load(image);
  return device;
}

// The versions that the job went through; version 0 is the empty pool.
std::vector<JobState> history_of(std::uint64_t versions, std::uint32_t rank) {
  JobState start;
  start.a.resize(a_words);
  start.b.resize(b_words);
  std::vector<JobState> history{start};
  for (std::uint64_t v = 1; v <= versions; ++v) {
    history.push_back(next_state(history.back(), v, rank, 0));
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
    const auto due = [this, n = result_.images](std::uint64_t every) {
      return every != 0 && n % every == 0;
    };
    const bool continues = due(options_.continue_every);
    const bool crashes_again = due(options_.recrash_every);
    auto device = crashes_again ? new_device(options_) : device_of(options_, image);
    CrashDevice& medium = *device;
    if (crashes_again) {
      device->load(image);
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
    SoloGroup group;
    SmallJob job(device_of(options_, image), group, options_);
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
// fence, the entry to an agreement, or the return of a commit.
struct Event {
  Agreements agreements;
  Bounds bounds;          // as this rank knows them
  std::uint64_t attempt;  // at the version under way
  std::vector<JobState> history;
  std::vector<Image> images;
};

// One commit of a run: its contents are those of (version, attempt). `fails` is the rank whose
// device fails in it, or none; `strays` the rank that makes another call in its place.
struct Step {
  std::uint64_t version;
  std::uint64_t attempt;
  std::optional<std::uint32_t> fails = std::nullopt;
  std::optional<std::uint32_t> strays = std::nullopt;
};

class RecordedRank {
 public:
  RecordedRank(const SweepOptions& options, ThreadJob& exchange, std::uint32_t rank)
      : options_(options), group_(exchange, rank), history_(history_of(0, rank)) {}

  // A run that goes on from an image; its versions up to the newest are those of `history`.
  void resume(const Image& image, const std::vector<JobState>& history, const Bounds& bounds) {
    image_ = image;
    history_ = history;
    bounds_ = bounds;
  }

  void run(const std::vector<Step>& steps) {
    auto device = new_device(options_);
    CrashDevice& medium = *device;
    if (!image_.empty()) device->load(image_);
    recording_ = !image_.empty();  // the recovery too
    device->on_fence = [this](CrashDevice& d) { record(d); };
    group_.on_enter = [this, &medium] { record(medium); };
    SmallJob job(std::move(device), group_, options_);
    if (!job.start().ok()) return;
    recording_ = true;
    for (const Step& step : steps) {
      if (!commit(job, medium, step)) return;
    }
    finished = true;
  }

  std::vector<Event> events;
  std::uint64_t sampled = 0;
  bool finished = false;

 private:
  bool commit(SmallJob& job, CrashDevice& medium, const Step& step) {
    history_.resize(step.version);
    history_.push_back(next_state(history_.back(), step.version, group_.rank(), step.attempt));
    attempt_ = step.attempt;
    bounds_.begun = step.version;
    if (step.fails == group_.rank()) {  // the fence of the state word: perhaps durable, perhaps not
      medium.failing_fence = medium.counters().fence_calls + 2;
    }
    const bool strays = step.strays == group_.rank();
    const Status done = strays ? job.stray() : job.commit(history_.back()).status();
    if (done.ok()) bounds_.acknowledged = step.version;
    record(medium);
    return done.ok() != (step.fails.has_value() || step.strays.has_value());
  }

  void record(CrashDevice& device) {
    if (!recording_) return;
    Event event{group_.agreements, bounds_, attempt_, history_, {}};
    const auto count = device.for_each_image(
        options_.model, options_.images_per_fence, options_.seed + events.size(),
        [&event](std::span<const std::byte> image) {
          event.images.emplace_back(image.begin(), image.end());
        });
    if (!count.exhaustive) ++sampled;
    events.push_back(std::move(event));
  }

  const SweepOptions& options_;
  ThreadGroup group_;
  Image image_;
  std::vector<JobState> history_;
  Bounds bounds_{0, 0};
  std::uint64_t attempt_ = 0;
  bool recording_ = false;
};

struct Recovery {
  Result<std::uint64_t> restored = Status(Code::not_found, "not run");
  JobState state;
};

void recover_rank(const SweepOptions& options, ThreadJob& exchange, std::uint32_t rank,
                  const Image& image, Recovery& recovery) {
  ThreadGroup group(exchange, rank);
  SmallJob job(device_of(options, image), group, options);
  recovery.restored = job.start();
  if (recovery.restored.ok()) recovery.state = job.consistent();
}

using Pair = std::array<Recovery, 2>;
using Recording = std::array<std::vector<Event>, 2>;

Pair recover_pair(const SweepOptions& options, const Image& image0, const Image& image1) {
  ThreadJob exchange(2);
  Pair pair;
  std::thread thread([&] { recover_rank(options, exchange, 1, image1, pair[1]); });
  recover_rank(options, exchange, 0, image0, pair[0]);
  thread.join();
  return pair;
}

class PairSweep {
 public:
  explicit PairSweep(const SweepOptions& options) : options_(options), judge_(options, result_) {}

  // Runs both ranks; `prepare` may make them resume.
  template <typename Prepare>
  Recording record(const std::vector<Step>& steps, const Prepare& prepare) {
    ThreadJob exchange(2);
    RecordedRank zero(options_, exchange, 0);
    RecordedRank one(options_, exchange, 1);
    prepare(zero, one);
    std::thread thread([&] { one.run(steps); });
    zero.run(steps);
    thread.join();
    if (!zero.finished || !one.finished) judge_.complain("the undisturbed run failed");
    result_.fences += zero.events.size() + one.events.size();
    result_.sampled += zero.sampled + one.sampled;
    return {std::move(zero.events), std::move(one.events)};
  }

  void crash_everywhere(const Recording& recording) {
    for (const Event& e0 : recording[0]) {
      for (const Event& e1 : recording[1]) {
        if (consistent_cut(e0.agreements, e1.agreements)) crash_at(e0, e1);
      }
    }
  }

  SweepResult result() const { return result_; }

 private:
  // Each image of one rank meets one of the other, all of both at least once.
  void crash_at(const Event& e0, const Event& e1) {
    const std::size_t pairs = std::max(e0.images.size(), e1.images.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      ++result_.images;
      judge(recover_pair(options_, e0.images[i % e0.images.size()],
                         e1.images[(i * 7 + i / 3) % e1.images.size()]),
            e0, e1);
    }
  }

  void judge(const Pair& pair, const Event& e0, const Event& e1) {
    const Bounds bounds{std::max(e0.bounds.acknowledged, e1.bounds.acknowledged),
                        std::max(e0.bounds.begun, e1.bounds.begun)};
    judge_.check(pair[0].restored, pair[0].state, e0.history, bounds);
    judge_.check(pair[1].restored, pair[1].state, e1.history, bounds);
    if (!pair[0].restored.ok() || !pair[1].restored.ok()) return;
    const std::uint64_t version = pair[0].restored.value();
    if (version != pair[1].restored.value()) {
      judge_.complain("the ranks came back with different versions");
    } else if (version == bounds.begun && e0.attempt != e1.attempt) {
      judge_.complain("the ranks came back with different attempts at one version");
    }
  }

  SweepOptions options_;
  SweepResult result_;
  Judge judge_;
};

std::vector<Step> steps_of(std::uint64_t first, std::uint64_t last, std::uint64_t attempt) {
  std::vector<Step> steps;
  for (std::uint64_t v = first; v <= last; ++v) steps.push_back({v, attempt});
  return steps;
}

constexpr auto from_nothing = [](RecordedRank&, RecordedRank&) {};

}  // namespace

SweepResult sweep_two_ranks(const SweepOptions& options) {
  PairSweep sweep(options);
  sweep.crash_everywhere(sweep.record(steps_of(1, options.versions, 0), from_nothing));
  return sweep.result();
}

SweepResult sweep_two_ranks_after_a_crash(const SweepOptions& options) {
  PairSweep sweep(options);
  const Recording first = sweep.record(steps_of(1, 2, 0), from_nothing);
  // Rank 0 completed version 2 and waits in the agreement; rank 1 has not stored anything of it.
  const Event& ahead = first[0][first[0].size() - 3];
  const auto lagging = std::find_if(first[1].rbegin(), first[1].rend(), [](const Event& event) {
    return event.bounds.acknowledged == 1 && event.bounds.begun == 1;
  });
  const Recording second =
      sweep.record(steps_of(2, 3, 1), [&](RecordedRank& zero, RecordedRank& one) {
        zero.resume(ahead.images.front(), {ahead.history[0], ahead.history[1]}, {1, 1});
        one.resume(lagging->images.front(), lagging->history, {1, 1});
      });
  sweep.crash_everywhere(second);
  return sweep.result();
}

SweepResult sweep_two_ranks_with_a_failure(const SweepOptions& options) {
  PairSweep sweep(options);
  const std::vector<Step> steps = {{1, 0}, {2, 0, 1U}, {2, 1}};
  sweep.crash_everywhere(sweep.record(steps, from_nothing));
  return sweep.result();
}

SweepResult sweep_two_ranks_with_a_mismatch(const SweepOptions& options) {
  PairSweep sweep(options);
  const std::vector<Step> steps = {{1, 0}, {2, 0, std::nullopt, 1U}, {2, 1}};
  sweep.crash_everywhere(sweep.record(steps, from_nothing));
  return sweep.result();
}

SweepResult sweep_one_rank(const SweepOptions& options) {
  return OneRankSweep(options).run();
}

}  // namespace perdure
