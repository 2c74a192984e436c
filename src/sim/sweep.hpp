// SPDX-License-Identifier: BSD-3-Clause
//
// sweep: one pass over a trace → every capacity of DRAM, exactly, under LRU and MRAM-fixed.
//
// Faults by stack distances (Mattson et al., 1970), write-backs by dirty levels (Thompson and
// Smith, ACM TOCS 7(1), 1989): research of the 1970s and 1980s that needs one number for each page.
// The hottest pages that fill MRAM are taken off the stack, so a curve belongs to one capacity of
// MRAM; any number of them is made in the one pass. With no MRAM the curve is that of simple LRU.
//
// The low-power policy equals MRAM-fixed wherever its MRAM hit rate never falls below its threshold
// at a time when it must choose a victim: Curve::low_power_equals() says where. Simple LRU over
// *both* memories has the same faults and write-backs as the curve without MRAM at the sum of the
// capacities, but not the same split of hits between the two: run() gives that.
//
// Threads: as run(). Memory: some 45 bytes for each page and curve.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "sim/account.hpp"
#include "sim/counters.hpp"
#include "sim/run.hpp"
#include "trace/reader.hpp"

namespace perdure::sim {

struct SweepConfiguration {
  std::vector<std::uint64_t> mram_bytes = {0};  // a curve for each; pages of the trace's size
  FirstTouch first_touch = FirstTouch::dirty;
  std::string rank = "count";  // of the pages for MRAM: "count" or "energy", which needs devices
  Devices devices;
  // Called now and then; false ends the pass, whose curves are then `partial`.
  std::function<bool(const Progress&)> progress;
};

// What happens for any number of DRAM frames, with a given number of MRAM frames.
class Curve {
 public:
  std::uint64_t mram_frames = 0;
  std::uint64_t pages = 0;        // that the program touched
  std::uint64_t stack_pages = 0;  // of them, not pinned in MRAM
  std::uint64_t floor_pages = 0;  // exact with at least as many DRAM frames
  trace::PageCounts mram;         // accesses of pinned pages
  trace::PageCounts dram;         // of the others
  // Index D: with D DRAM frames. From stack_pages on nothing changes any more.
  std::vector<std::uint64_t> page_ins;   // without first touches
  std::vector<std::uint64_t> page_outs;  // dirty evictions
  // Lowest MRAM hit rate at or after the moment when D frames of DRAM are full, 1 if they never
  // are.
  std::vector<double> hit_rate_min;

  // Everything that run() counts, at D frames. D is at least 1 unless all pages are pinned.
  Counters counters(std::uint64_t dram_frames) const;
  // Whether the low-power policy, with this alpha and no warm-up, does the same as MRAM-fixed. With
  // the lowest hit rate h this is so from D = M (alpha / h - 1) on. False without MRAM.
  bool low_power_equals(std::uint64_t dram_frames, double alpha) const;
};

struct Curves : Progress {
  std::vector<Curve> curves = {};  // in the order of mram_bytes
  std::uint32_t page_bytes = 0;
  std::uint32_t line_bytes = 0;
  double compute_ns = 0;  // as the trace says; 0 if partial
  bool partial = false;   // ended before the trace: the curves are of `accesses`
};

Result<Curves> sweep(trace::Reader& reader, const SweepConfiguration& configuration);

}  // namespace perdure::sim
