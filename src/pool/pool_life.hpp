// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's life: attached, restarted, perhaps closed to others, and perhaps broken.
//
// Invariants
//   pool.V4  When a step that all ranks must have done failed, nobody knows what holds on
//       the others: from then on nothing is asked of the pool, and only reopening it shows.
#pragma once

#include <string>
#include <utility>

#include "base/status.hpp"

namespace perdure {

class PoolLife {
 public:
  bool restarted() const { return restarted_; }
  void note_restarted() { restarted_ = true; }

  // The outcome of a step that all ranks must have done; returns it (pool.V4).
  Status must(Status outcome) {
    broken_ = std::move(outcome);
    return broken_;
  }
  Status check_usable() const {
    if (broken_.ok()) return Status::success();
    return Status(Code::wrong_state,
                  "the pool failed earlier and must be reopened: ", broken_.message());
  }

  // No other array is opened from now on, nor companion added; `why` says what to do instead.
  void close_to_others(std::string why) { closed_to_others_ = std::move(why); }
  Status check_open_to_others() const {
    if (closed_to_others_.empty()) return Status::success();
    return {Code::wrong_state, closed_to_others_};
  }

 private:
  bool restarted_ = false;
  std::string closed_to_others_;
  Status broken_;
};

}  // namespace perdure
