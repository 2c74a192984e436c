// SPDX-License-Identifier: BSD-3-Clause
#include "sim/run.hpp"

#include <algorithm>
#include <utility>

#include "sim/policy.hpp"

namespace perdure::sim {
namespace {

constexpr std::size_t hit_rate_samples_max = 1024;

Status invalid(const std::string& what) {
  return {Code::invalid_argument, what};
}

Status check_capacity(const char* name, std::uint64_t bytes, std::uint32_t page_bytes) {
  if (bytes % page_bytes == 0 && bytes / page_bytes <= std::uint64_t{1} << 32U) {
    return Status::success();
  }
  return invalid(sentence(name, " of ", bytes, " bytes is not a number of pages of ", page_bytes,
                          " bytes, or beyond 2^32 of them"));
}

Status check_frames(std::uint64_t frames, const trace::Header& header) {
  if (frames == 0) return invalid("a machine without DRAM and MRAM runs nothing: give it some");
  if (frames >= header.floor_pages) return Status::success();
  return invalid(sentence(frames, " page frames are fewer than the ", header.floor_pages,
                          " from which the reduced trace is exact; give more memory, or record the "
                          "trace with a smaller reduction, or none"));
}

// For each record, the number of the next one to its page.
Result<std::vector<std::uint64_t>> read_next_uses(trace::Reader& reader) {
  if (!reader.seekable()) {
    return Status(Code::wrong_state,
                  "a policy that knows the future reads the trace twice: write it to a file");
  }
  std::vector<std::uint64_t> next_uses, last;
  for (;;) {
    PERDURE_TRY_ASSIGN(auto batch, reader.next());
    if (batch.kind == trace::Batch::Kind::end) break;
    last.resize(reader.pages(), never);
    for (const trace::Record& record : batch.records) {
      const std::uint64_t now = next_uses.size();
      if (last[record.page] != never) next_uses[last[record.page]] = now;
      last[record.page] = now;
      next_uses.push_back(never);
    }
  }
  PERDURE_TRY(reader.rewind());
  return next_uses;
}

// Halves the samples when there are too many: they stay evenly spread over the run.
class HitRateCurve {
 public:
  void add(const HitRateSample& sample) {
    if (++since_ < stride_) return;
    since_ = 0;
    samples.push_back(sample);
    if (samples.size() < hit_rate_samples_max) return;
    for (std::size_t i = 0; i < samples.size() / 2; ++i) samples[i] = samples[2 * i + 1];
    samples.resize(samples.size() / 2);
    stride_ *= 2;
  }
  std::vector<HitRateSample> samples;

 private:
  std::uint64_t stride_ = 1;
  std::uint64_t since_ = 0;
};

class Run {
 public:
  Run(trace::Reader& reader, const Configuration& configuration)
      : reader_(reader),
        configuration_(configuration),
        memory_(configuration.dram_bytes / reader.header().page_bytes,
                configuration.mram_bytes / reader.header().page_bytes, configuration.first_touch) {}

  Result<Outcome> run() {
    PERDURE_TRY(check());
    PERDURE_TRY(prepare());
    PERDURE_TRY(replay());
    PERDURE_TRY(check_sums());
    PERDURE_TRY(report());
    return std::move(outcome_);
  }

 private:
  Status check() {
    const trace::Header& header = reader_.header();
    PERDURE_TRY(check_capacity("DRAM", configuration_.dram_bytes, header.page_bytes));
    PERDURE_TRY(check_capacity("MRAM", configuration_.mram_bytes, header.page_bytes));
    PERDURE_TRY(check_frames(memory_.frames(), header));
    PERDURE_TRY_ASSIGN(entry_, find_policy(configuration_.policy));
    if (header.floor_pages > 1 && !entry_->exact_when_reduced) {
      outcome_.warnings.push_back(
          entry_->name + " on a reduced trace: references that follow one another within " +
          std::to_string(header.floor_pages) + " pages are seen as one");
    }
    return Status::success();
  }

  Status prepare() {
    PERDURE_TRY_ASSIGN(auto options, check_options(*entry_, configuration_.policy_options));
    outcome_.options = options.values;
    PolicySetup setup = {memory_, std::move(options)};
    setup.devices = &configuration_.devices;
    setup.floor_pages = reader_.header().floor_pages;
    if (entry_->needs_counts) {
      PERDURE_TRY_ASSIGN(auto counts, trace::count_pages(reader_));
      counts_ = std::move(counts);
      setup.counts = counts_;
    }
    if (entry_->needs_future) {
      PERDURE_TRY_ASSIGN(auto next_uses, read_next_uses(reader_));
      next_uses_ = std::move(next_uses);
      setup.next_uses = next_uses_;
    }
    if (reader_.seekable()) {
      PERDURE_TRY_ASSIGN(auto totals, reader_.totals());
      progress_.accesses_total = totals->accesses();
    }
    PERDURE_TRY_ASSIGN(replay_, entry_->create(setup));
    return Status::success();
  }

  // The loop. All that costs time is in feed().
  Status replay() {
    for (;;) {
      PERDURE_TRY_ASSIGN(auto batch, reader_.next());
      if (batch.kind == trace::Batch::Kind::end) return Status::success();
      replay_->grow(reader_.pages());
      replay_->feed(batch.records);
      count(batch);
      if (configuration_.progress && !configuration_.progress(progress_)) {
        outcome_.partial = true;
        return Status::success();
      }
    }
  }

  void count(const trace::Batch& batch) {
    requested_.reads += batch.accesses.reads;
    requested_.writes += batch.accesses.writes;
    progress_.records += batch.records.size();
    progress_.accesses = requested_.reads + requested_.writes;
    const PlaceCounters mram = memory_.counters()[Place::mram];
    if (!batch.records.empty()) hit_rate_.add({progress_.accesses, mram.reads + mram.writes});
  }

  Status check_sums() const {
    const Counters counted = memory_.counters();
    const std::uint64_t evictions =
        counted.sum(&PlaceCounters::page_outs) + counted.sum(&PlaceCounters::clean_evictions);
    if (progress_.records == 0) return invalid("the trace holds no accesses: nothing to simulate");
    if (counted.sum(&PlaceCounters::reads) == requested_.reads &&
        counted.sum(&PlaceCounters::writes) == requested_.writes &&
        counted.faults() == evictions + memory_.resident_pages()) {
      return Status::success();
    }
    return Status(Code::damaged, "policy ", entry_->name, ": ", progress_.accesses,
                  " accesses came in, ", counted.accesses(),
                  " were accounted for; this is a fault of the simulator");
  }

  Result<double> compute_ns() {
    if (configuration_.compute_ns.has_value()) return *configuration_.compute_ns;
    double known = 0;
    if (reader_.region().empty() && !outcome_.partial) {
      PERDURE_TRY_ASSIGN(auto totals, reader_.totals());
      known = static_cast<double>(totals->ending.compute_ns);
    }
    if (known == 0) {
      outcome_.warnings.emplace_back(
          "the computation time is not known and counts as 0: times are of memory and swap alone");
    }
    return known;
  }

  Status report() {
    PERDURE_TRY_ASSIGN(auto compute, compute_ns());
    outcome_.policy = entry_->name;
    outcome_.is_bound = entry_->is_bound;
    outcome_.dram_frames = memory_.frames(Place::dram);
    outcome_.mram_frames = memory_.frames(Place::mram);
    outcome_.counters = memory_.counters();
    outcome_.pages = outcome_.counters.sum(&PlaceCounters::first_touches);
    outcome_.records = progress_.records;
    outcome_.hits = progress_.records - outcome_.counters.faults();
    outcome_.mram_hit_rate = std::move(hit_rate_.samples);
    const trace::Header& header = reader_.header();
    outcome_.machine = {
        configuration_.devices,
        configuration_.dram_bytes,
        configuration_.mram_bytes,
        configuration_.swap_bytes,
        header.page_bytes,
        header.cache.line_bytes,
        configuration_.first_touch_read.value_or(configuration_.first_touch == FirstTouch::clean),
        compute};
    outcome_.cost = cost_of(outcome_.counters, outcome_.machine, outcome_.pages);
    const auto& warnings = configuration_.devices.warnings;
    outcome_.warnings.insert(outcome_.warnings.end(), warnings.begin(), warnings.end());
    return Status::success();
  }

  trace::Reader& reader_;
  const Configuration& configuration_;
  Memory memory_;
  const PolicyEntry* entry_ = nullptr;
  std::unique_ptr<Replay> replay_;
  std::vector<trace::PageCounts> counts_;
  std::vector<std::uint64_t> next_uses_;
  trace::PageCounts requested_;
  Progress progress_;
  HitRateCurve hit_rate_;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run(trace::Reader& reader, const Configuration& configuration) {
  return Run(reader, configuration).run();
}

}  // namespace perdure::sim
