// SPDX-License-Identifier: BSD-3-Clause
//
// Way choice: whether a thread saves the next version beside the program. Each possible way has a
// turn of some iterations, and if both took nearly as long each has another one; then the way whose
// median iteration is the shorter is kept. Both are tried again after some time, each time later,
// as one disturbed iteration may have decided where a turn has few. An iteration is compared as a
// whole, from persistence point to persistence point: a thread costs where it shares the memory, or
// a processor, with the program. The first iteration of a turn does not count: it pays for the
// version that the way before began. A turn has more iterations where they are short, as those
// differ more from each other, but ends early where none is near the fastest way's. A thread can
// hide the wait at the persistence point and nothing else. So it is not tried where that wait is
// short. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/perdure_ipv.h"

namespace perdure {

using Tier = perdure_ipv_tier;
const char* tier_name(Tier tier);

// Who saves a version: the program's own thread, or one beside it.
enum class Way : std::uint8_t { alone, beside };

class WayChoice {
 public:
  static constexpr unsigned rounds = 2;                 // turns of each way, at most
  static constexpr unsigned turn_iterations = 6;        // of which the first does not count
  static constexpr std::uint64_t turn_ns = 20'000'000;  // counted, end a turn before
  // Iterations until all are tried again: first so many for each that was a trial, then four times
  // as many each time, up to a limit.
  static constexpr std::uint64_t kept_per_trial = 32, kept_growth = 4, most_kept = 2000;
  // A thread is tried if it could take so much less than the program alone: 1 / this.
  static constexpr std::uint64_t gained_part = 32;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  // One or both, `alone` first.
  explicit WayChoice(std::vector<Way> possible);

  // For the next iteration; called once for each.
  Way next();
  // How long the iteration took whose way next() said last, and how long of it the program was kept
  // at its persistence point; before the next call of it.
  void record(std::uint64_t iteration_ns, std::uint64_t waited_ns);

  const std::vector<Way>& possible() const { return possible_; }
  // The median iteration of a way, by its place in `possible`; unknown: none counted.
  std::uint64_t median_ns(std::size_t way) const;
  bool decided() const { return possible_.size() == 1 || turn_ >= rounds * possible_.size(); }

  // Iterations that were recorded, apart: those that were trials, and those in the way kept.
  struct Spent {
    std::uint64_t iterations = 0;
    std::uint64_t ns = 0;
  };
  const Spent& trials() const { return trials_; }
  const Spent& kept() const { return kept_; }

 private:
  void begin_trials();
  void end_turn();
  bool turn_is_over() const;
  bool is_far_behind(std::uint64_t iteration_ns) const {
    return iteration_ns > median_ns(best_) / 4 * 5;
  }
  bool is_hopeless(std::size_t way) const;
  bool could_gain() const;
  bool is_near(std::uint64_t iteration_ns) const;
  bool has_turn(std::size_t turn) const;

  // The iterations of a way that count, sorted each.
  struct Counted {
    std::vector<std::uint64_t> iteration_ns, waited_ns;
  };
  std::vector<Way> possible_;
  std::vector<Counted> counted_;  // by way
  std::size_t turn_ = 0;
  unsigned recorded_ = 0;                          // iterations of this turn
  std::uint64_t turn_spent_ns_ = 0;                // of those that count
  std::uint64_t since_decided_ = 0, to_keep_ = 0;  // iterations
  bool asked_ = false;                             // next() was called, and record() is to come
  Way way_ = Way::alone;                           // that it said
  std::size_t best_ = 0;
  Spent trials_, kept_;
};

}  // namespace perdure
