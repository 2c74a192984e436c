// SPDX-License-Identifier: BSD-3-Clause
//
// The main loop of SP, BT and LU, and what they are verified by.
//
// A Solver has the Flow `flow`; step(), which is one iteration; and carried(), the arrays that a
// run goes on from.
#pragma once

#include <vector>

#include "job/stopwatch.hpp"
#include "npb/flow/flow.hpp"
#include "npb/loop.hpp"
#include "npb/program.hpp"

namespace npb::flow {

// Collective. The ten norms against the published ones. rhs becomes the residual of u.
std::vector<Check> norm_checks(Flow& flow, const ProblemClass& problem);

// Collective. Makes a solver and runs all iterations. add_checks(solver, checks) adds what a
// program is verified by beside the norms.
template <typename Solver, typename AddChecks>
Result run(const Options& options, const ProblemClass& problem, AddChecks add_checks) {
  Result result = planned(options, points_text(problem.n, problem.n, problem.n),
                          static_cast<std::uint64_t>(problem.iterations));
  const job::Stopwatch setup_watch;
  Solver solver(problem);
  result.setup_s = setup_watch.seconds();

  State state(options.state);
  for (const Carried& array : solver.carried()) state.object(array);
  result.loop = run_loop(state, result.iterations, [&] { solver.step(); });
  result.checks = norm_checks(solver.flow, problem);
  add_checks(solver, result.checks);
  return result;
}

template <typename Solver>
Result run(const Options& options, const ProblemClass& problem) {
  return run<Solver>(options, problem, [](Solver&, std::vector<Check>&) {});
}

}  // namespace npb::flow
