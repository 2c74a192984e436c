// SPDX-License-Identifier: BSD-3-Clause
//
// run: one trace, one machine, one policy → what it costs.
//
// Checked at the end: requests in = requests accounted, pages in = pages out + pages resident. What
// does not add up is an error, never a result.
// Threads: several runs at once, each with a Reader of its own. Failure: impossible capacities
// (no frames, fewer than the reduction of the trace is exact for), unknown names, errors of the
// reader. Memory: 40 bytes for each page at most, policies that know the future (OPT) 20 bytes for
// each record besides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "sim/account.hpp"
#include "sim/counters.hpp"
#include "sim/memory.hpp"
#include "trace/reader.hpp"

namespace perdure::sim {

struct Progress {
  std::uint64_t records = 0;
  std::uint64_t accesses = 0;
  std::uint64_t accesses_total = 0;  // 0: not known, as the trace is a pipe
};

struct Configuration {
  Devices devices;
  std::uint64_t dram_bytes = 0;  // multiples of the trace's pages
  std::uint64_t mram_bytes = 0;
  std::uint64_t swap_bytes = 0;  // see Machine
  std::string policy = "lru";
  std::map<std::string, std::string> policy_options;
  FirstTouch first_touch = FirstTouch::dirty;
  // Whether a first touch is read from swap; by default only with FirstTouch::clean.
  std::optional<bool> first_touch_read;
  std::optional<double> compute_ns;  // by default what the trace says
  // Called now and then; false ends the run, whose outcome is then `partial`.
  std::function<bool(const Progress&)> progress;
};

// The share of accesses that went to MRAM from the beginning to `accesses`.
struct HitRateSample {
  std::uint64_t accesses = 0;
  std::uint64_t mram_accesses = 0;
};

struct Outcome {
  std::string policy;
  std::map<std::string, std::string> options;  // all of them, also those left at their default
  std::uint64_t dram_frames = 0;
  std::uint64_t mram_frames = 0;
  std::uint64_t pages = 0;  // that the program touched
  std::uint64_t records = 0;
  std::uint64_t hits = 0;  // records that found their page resident
  Counters counters;
  std::vector<HitRateSample> mram_hit_rate;  // at most 1024
  Machine machine;
  Cost cost;
  bool is_bound = false;
  bool partial = false;
  std::vector<std::string> warnings;
};

Result<Outcome> run(trace::Reader& reader, const Configuration& configuration);

}  // namespace perdure::sim
