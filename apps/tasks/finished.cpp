// SPDX-License-Identifier: BSD-3-Clause
#include "finished.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tasks {
namespace {

std::filesystem::path pool_of(const std::filesystem::path& directory, int rank) {
  return directory / ("rank-" + std::to_string(rank));
}

// The list is as long as it was; log mode writes the pages that changed, so a task costs no more
// when there are many.
void bring_back(perdure::Pool& pool, std::vector<Finished>& list, Problem& problem) {
  const Problem asked = problem;
  pool.array("finished", list, perdure::Mode::log);
  pool.scalar("problem", problem);
  pool.restart();
  if (problem == asked) return;
  throw std::runtime_error("the pools are of --board " + std::to_string(problem.board) +
                           " --depth " + std::to_string(problem.depth) +
                           "; name another --directory, or remove this one");
}

}  // namespace

FinishedTasks::FinishedTasks(const std::filesystem::path& directory, const Problem& problem,
                             int rank, int ranks)
    : problem_(problem),
      pool_((std::filesystem::create_directories(directory), pool_of(directory, rank).string())) {
  bring_back(pool_, own_, problem_);
  int beyond = 0;  // ranks of all jobs so far
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rank-")) beyond = std::max(beyond, std::stoi(name.substr(5)) + 1);
  }
  for (int other = rank + ranks; other < beyond; other += ranks) {
    if (!std::filesystem::exists(pool_of(directory, other))) continue;
    std::vector<Finished> list;
    perdure::Pool pool(pool_of(directory, other).string());
    bring_back(pool, list, problem_);
    of_others_.insert(of_others_.end(), list.begin(), list.end());
    pool.close();
  }
}

void FinishedTasks::add(const Finished& finished) {
  own_.push_back(finished);
  pool_.commit();
}

}  // namespace tasks
