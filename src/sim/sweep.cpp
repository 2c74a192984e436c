// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sweep.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "sim/hot_pages.hpp"
#include "sim/stack_distance.hpp"

namespace perdure::sim {
namespace {

// How often each number came up: in 32 bits, as the numbers are as many as pages and don't fit the
// cache.
class Histogram {
 public:
  void reserve(std::size_t size) { counts_.reserve(size); }
  void grow(std::size_t size) { counts_.resize(size); }
  void add(std::uint32_t number) {
    if (++counts_[number] == 0) [[unlikely]]
      ++overflows_[number];
  }
  // Entry k is how often k or more came up; the first `size` of them. Frees the counts.
  std::vector<std::uint64_t> sums_from(std::size_t size) {
    std::vector<std::uint64_t> sums(size);
    std::uint64_t sum = 0;
    for (std::size_t k = counts_.size(); k-- > 0;) {
      const auto more = overflows_.find(static_cast<std::uint32_t>(k));
      sum += counts_[k] + (more == overflows_.end() ? 0 : more->second << 32U);
      if (k < size) sums[k] = sum;
    }
    counts_ = {};
    return sums;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::map<std::uint32_t, std::uint64_t> overflows_;
};

// Makes one curve. Number k of a histogram is for what happens with at most k frames of DRAM.
class CurvePass {
 public:
  CurvePass(std::uint64_t mram_frames, std::vector<bool> is_hot, FirstTouch first_touch)
      : is_hot_(std::move(is_hot)), starts_dirty_(first_touch == FirstTouch::dirty) {
    curve_.mram_frames = mram_frames;
  }

  void grow(std::uint32_t pages) {
    pages_ = pages;
    stack_.grow(pages);
    faults_.grow(std::size_t{pages} + 1);
    write_backs_.grow(std::size_t{pages} + 1);
    if (curve_.mram_frames != 0) hit_rates_.resize(std::size_t{pages} + 1, 1);
  }

  // So that memory does not grow by doubling.
  void reserve(std::uint32_t pages) {
    stack_.reserve(pages);
    faults_.reserve(std::size_t{pages} + 1);
    write_backs_.reserve(std::size_t{pages} + 1);
    if (curve_.mram_frames != 0) hit_rates_.reserve(std::size_t{pages} + 1);
  }

  void feed(std::span<const trace::Record> records) {
#ifdef __x86_64__
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (has_avx2) return feed_with_avx2(records);
#endif
    feed_all(records);
  }

  Curve finish(std::uint64_t floor_pages) {
    stack_.visit([&](std::uint32_t page, std::uint32_t depth) {
      if (stack_.note(page) != clean) write_backs_.add(std::max(stack_.note(page), depth) - 1);
    });
    curve_.stack_pages = stack_.pages();
    // Of a pass that was stopped not all were touched: ids are in the order of first touch.
    const auto touched = static_cast<std::ptrdiff_t>(std::min(pages_, is_hot_.size()));
    const auto pinned = std::count(is_hot_.begin(), is_hot_.begin() + touched, true);
    curve_.pages = curve_.stack_pages + static_cast<std::uint64_t>(pinned);
    curve_.floor_pages = floor_pages;
    curve_.dram = dram_;
    curve_.page_ins = faults_.sums_from(curve_.stack_pages + 1);
    curve_.page_outs = write_backs_.sums_from(curve_.stack_pages + 1);
    for (std::size_t k = hit_rates_.size(); k-- > 1;) {
      hit_rates_[k - 1] = std::min(hit_rates_[k - 1], hit_rates_[k]);
    }
    if (curve_.mram_frames != 0) hit_rates_.resize(curve_.stack_pages + 1, 1);
    curve_.hit_rate_min = std::move(hit_rates_);
    return std::move(curve_);
  }

 private:
  static constexpr std::size_t ahead = 12;    // records
  static constexpr std::size_t block = 1024;  // records
  static constexpr std::uint32_t clean = ~std::uint32_t{0};

#ifdef __x86_64__
  // The same code with wider vectors, shifts without flags, and so on.
  [[gnu::target("avx2,bmi,bmi2,popcnt")]] void feed_with_avx2(
      std::span<const trace::Record> records) {
    feed_all(records);
  }
#endif

  [[gnu::always_inline]] inline void feed_all(std::span<const trace::Record> records) {
    for (; records.size() > block; records = records.subspan(block)) feed_block(records);
    feed_block(records);
  }

  // The first `block` of the records at most.
  [[gnu::always_inline]] inline void feed_block(std::span<const trace::Record> records) {
    depths_count_ = levels_count_ = 0;
    for (std::size_t i = 0; i < std::min(block, records.size()); ++i) {
      stack_.prefetch(records[std::min(i + ahead, records.size() - 1)].page);
      if (curve_.mram_frames == 0) {
        reference(records[i]);
      } else {
        reference_or_pin(records[i]);
      }
    }
    // Not where they come up: histograms don't fit the cache, and here many are waited for at once.
    for (std::size_t i = 0; i < depths_count_; ++i) faults_.add(depths_[i] - 1);
    for (std::size_t i = 0; i < levels_count_; ++i) write_backs_.add(levels_[i] - 1);
  }

  // Dirty level (Thompson and Smith): the greatest depth at which the page was referenced since it
  // was written. With fewer frames than that it was evicted, and written back, once.
  [[gnu::always_inline]] inline std::uint32_t reference(const trace::Record& record) {
    const std::uint32_t depth = stack_.reference(record.page);
    dram_.reads += record.reads;
    dram_.writes += record.writes;
    std::uint32_t& level = stack_.note(record.page);
    if (depth == StackDistance::cold) {
      if (record.writes != 0 || starts_dirty_) level = 0;
      return depth;
    }
    depths_[depths_count_++] = depth;
    // Without branches, as nobody can predict writes.
    const std::uint32_t deepest = std::max(level, depth);  // clean is more than all
    const auto writes = static_cast<std::uint32_t>(record.writes != 0);
    levels_[levels_count_] = deepest;
    levels_count_ += writes & static_cast<std::uint32_t>(deepest != clean);
    level = deepest & (writes - 1);
    return depth;
  }

  // The hit rate counts where the low-power policy looks at it: at faults that need a victim.
  [[gnu::always_inline]] inline void reference_or_pin(const trace::Record& record) {
    if (is_hot_[record.page]) {
      curve_.mram.reads += record.reads;
      curve_.mram.writes += record.writes;
      return;
    }
    const std::uint64_t mram = curve_.mram.reads + curve_.mram.writes;
    const std::uint64_t all = mram + dram_.reads + dram_.writes;
    const std::uint32_t pages_before = stack_.pages();
    const std::uint32_t depth = reference(record);
    if (all == 0) return;
    const std::uint32_t frames = depth == StackDistance::cold ? pages_before : depth - 1;
    double& least = hit_rates_[frames];
    const double rate = static_cast<double>(mram) / static_cast<double>(all);
    least = std::min(least, rate);
  }

  std::vector<bool> is_hot_;
  bool starts_dirty_;
  std::size_t pages_ = 0;       // touched so far
  StackDistance stack_{clean};  // notes are dirty levels
  Histogram faults_;
  Histogram write_backs_;
  std::vector<double> hit_rates_;
  // Of the block that is being fed: depths of references, and dirty levels at writes.
  std::array<std::uint32_t, block> depths_ = {};
  std::array<std::uint32_t, block> levels_ = {};
  std::size_t depths_count_ = 0;
  std::size_t levels_count_ = 0;
  trace::PageCounts dram_;
  Curve curve_;
};

class Sweep {
 public:
  Sweep(trace::Reader& reader, const SweepConfiguration& configuration)
      : reader_(reader), configuration_(configuration) {}

  Result<Curves> sweep() {
    PERDURE_TRY(prepare());
    PERDURE_TRY(pass());
    return finish();
  }

 private:
  Status prepare() {
    const std::uint32_t page_bytes = reader_.header().page_bytes;
    Rank rank = Rank::count;
    if (configuration_.rank == "energy") {
      rank = Rank::energy;
    } else if (configuration_.rank != "count") {
      return Status(Code::invalid_argument, "rank=", configuration_.rank,
                    ": it must be count or energy");
    }
    PERDURE_TRY(check_rank(rank, configuration_.devices));
    if (configuration_.mram_bytes.empty()) {
      return {Code::invalid_argument, "a sweep needs a capacity of MRAM, which may be 0"};
    }
    for (const std::uint64_t bytes : configuration_.mram_bytes) {
      if (bytes % page_bytes != 0) {
        return Status(Code::invalid_argument, "MRAM of ", bytes,
                      " bytes is not a number of pages of ", page_bytes, " bytes");
      }
      PERDURE_TRY(add_pass(bytes / page_bytes, rank));
    }
    if (reader_.seekable()) {
      PERDURE_TRY_ASSIGN(auto totals, reader_.totals());
      progress_.accesses_total = totals->accesses();
      const auto pages = static_cast<std::uint32_t>(totals->pages.size());
      for (auto& one : passes_) one->reserve(pages);
    }
    return Status::success();
  }

  Status add_pass(std::uint64_t mram_frames, Rank rank) {
    std::vector<bool> hot;
    if (mram_frames != 0) {
      PERDURE_TRY_ASSIGN(auto counts, trace::count_pages(reader_));
      hot = hot_pages(counts, mram_frames, rank, &configuration_.devices);
    }
    passes_.push_back(
        std::make_unique<CurvePass>(mram_frames, std::move(hot), configuration_.first_touch));
    return Status::success();
  }

  Status pass() {
    for (;;) {
      PERDURE_TRY_ASSIGN(auto batch, reader_.next());
      if (batch.kind == trace::Batch::Kind::end) break;
      for (auto& one : passes_) {
        one->grow(reader_.pages());
        one->feed(batch.records);
      }
      progress_.accesses += batch.accesses.reads + batch.accesses.writes;
      progress_.records += batch.records.size();
      if (configuration_.progress && !configuration_.progress(progress_)) {
        partial_ = true;
        break;
      }
    }
    if (progress_.records != 0) return Status::success();
    return {Code::invalid_argument, "the trace holds no accesses: nothing to simulate"};
  }

  Result<Curves> finish() {
    Curves curves{progress_};
    const trace::Header& header = reader_.header();
    curves.page_bytes = header.page_bytes;
    curves.line_bytes = header.cache.line_bytes;
    curves.partial = partial_;
    if (reader_.region().empty() && !partial_) {
      PERDURE_TRY_ASSIGN(auto totals, reader_.totals());
      curves.compute_ns = static_cast<double>(totals->ending.compute_ns);
    }
    for (auto& one : passes_) {
      Curve curve = one->finish(header.floor_pages);
      const trace::PageCounts &dram = curve.dram, &mram = curve.mram;
      if (dram.reads + dram.writes + mram.reads + mram.writes != progress_.accesses) {
        return Status(Code::damaged, "accesses were lost; this is a fault of the simulator");
      }
      curves.curves.push_back(std::move(curve));
    }
    return curves;
  }

  trace::Reader& reader_;
  const SweepConfiguration& configuration_;
  std::vector<std::unique_ptr<CurvePass>> passes_;
  Progress progress_;
  bool partial_ = false;
};

}  // namespace

Counters Curve::counters(std::uint64_t dram_frames) const {
  const std::uint64_t frames = std::min(dram_frames, stack_pages);
  Counters counters;
  PlaceCounters& at_mram = counters[Place::mram];
  at_mram.reads = mram.reads;
  at_mram.writes = mram.writes;
  at_mram.first_touches = pages - stack_pages;
  PlaceCounters& at_dram = counters[Place::dram];
  at_dram.reads = dram.reads;
  at_dram.writes = dram.writes;
  at_dram.first_touches = stack_pages;
  at_dram.page_ins = page_ins[frames];
  at_dram.page_outs = page_outs[frames];
  at_dram.clean_evictions = stack_pages + page_ins[frames] - frames - page_outs[frames];
  return counters;
}

bool Curve::low_power_equals(std::uint64_t dram_frames, double alpha) const {
  if (mram_frames == 0) return false;
  const double threshold =
      alpha * static_cast<double>(mram_frames) / static_cast<double>(mram_frames + dram_frames);
  return hit_rate_min[std::min(dram_frames, stack_pages)] >= threshold;
}

Result<Curves> sweep(trace::Reader& reader, const SweepConfiguration& configuration) {
  return Sweep(reader, configuration).sweep();
}

}  // namespace perdure::sim
