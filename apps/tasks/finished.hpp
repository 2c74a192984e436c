// SPDX-License-Identifier: BSD-3-Clause
//
// Finished tasks: what this rank has found, in a pool of its own, which it commits after each task
// and with nobody. So a task that is finished is never done again, whatever was under way on other
// ranks when the job ended.
//
// Rank r has the pool DIRECTORY/rank-r. Pools of ranks that an earlier job had more are read by the
// rank r from which they are a multiple of the number of ranks away; they stay as they are.
//
// Threads: one. Failure: perdure::Error; std::runtime_error if the pools are of another problem.
#pragma once

#include <cstdint>
#include <filesystem>
#include <perdure/perdure.hpp>
#include <vector>

#include "queens.hpp"

namespace tasks {

struct Finished {
  Task task = 0;
  std::uint64_t value = 0;
};

// Tasks of one can't be taken for tasks of another.
struct Problem {
  int board = 0;
  int depth = 0;
  bool operator==(const Problem&) const = default;
};

class FinishedTasks {
 public:
  // Not for two jobs at once: the pool is this process's until the end.
  FinishedTasks(const std::filesystem::path& directory, const Problem& problem, int rank,
                int ranks);

  // Durable when it returns.
  void add(const Finished& finished);
  // Of this job and of all before it, in pools of this rank.
  const std::vector<Finished>& own() const { return own_; }
  const std::vector<Finished>& of_others() const { return of_others_; }

 private:
  std::vector<Finished> own_;
  std::vector<Finished> of_others_;
  Problem problem_;
  perdure::Pool pool_;
};

}  // namespace tasks
