// SPDX-License-Identifier: BSD-3-Clause
//
// The main loop of all programs: the iterations that no version holds, each followed by its
// persistence point.
#pragma once

#include <cstdint>

#include "job/stopwatch.hpp"
#include "npb/region.hpp"
#include "npb/state.hpp"

namespace npb {

// On this rank.
struct LoopFigures {
  double loop_s = 0;               // the timed region; ends when all versions are durable
  double loop_cpu_s = 0;           // of the processor, by all threads
  double persist_s = 0;            // of it, what the protection of the state takes
  double copy_s = 0;               // of that, copying before a flush
  double open_s = 0, close_s = 0;  // before and after it: the pool, or files, and all objects
  std::uint64_t restored = 0;      // iterations that had been done before
  std::uint64_t state_bytes = 0;   // that are carried
  std::uint64_t model_ns = 0;      // of an emulated device
};

// Collective. The state knows its objects and scalars. step() is called for each of the iterations
// that are not done, within the timed region.
template <typename Step>
LoopFigures run_loop(State& state, std::uint64_t iterations, Step step) {
  LoopFigures figures;
  const job::Stopwatch open_watch;
  figures.restored = state.restore();
  figures.open_s = open_watch.seconds();
  const job::Stopwatch watch;
  const double cpu_before_s = job::cpu_seconds();
  mark_begin();
  for (std::uint64_t i = figures.restored + 1; i <= iterations; ++i) {
    mark_iteration(i);
    step();
    state.persist(i);
  }
  state.wait();
  mark_end();
  figures.loop_s = watch.seconds();
  figures.loop_cpu_s = job::cpu_seconds() - cpu_before_s;
  const job::Stopwatch close_watch;
  state.close();
  figures.close_s = close_watch.seconds();
  figures.persist_s = state.persist_s();
  figures.copy_s = state.copy_s();
  figures.state_bytes = state.bytes();
  figures.model_ns = state.model_ns();
  return figures;
}

}  // namespace npb
