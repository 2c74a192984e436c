// SPDX-License-Identifier: BSD-3-Clause
//
// Solver: PageRank by iteration, on a State.
#pragma once

#include <vector>

#include "graph.hpp"
#include "options.hpp"
#include "state.hpp"

namespace pagerank {

class Solver {
 public:
  // All must outlive the solver.
  Solver(const Graph& graph, const Options& options, State& state)
      : graph_(graph), options_(options), state_(state) {}

  // Collective: every rank is 1 / n.
  void start();

  // Collective: goes on from the current iterate until options.iterations or the tolerance, and
  // commits each options.commit_every iterations. Throws SharedError if the ranks no longer sum
  // to 1.
  void run();

  // What each iteration of run() took on this rank, with its commit if it had one.
  const std::vector<double>& iteration_s() const { return iteration_s_; }

 private:
  bool done() const;
  void iterate();

  const Graph& graph_;
  const Options& options_;
  State& state_;
  std::vector<double> iteration_s_;
};

}  // namespace pagerank
