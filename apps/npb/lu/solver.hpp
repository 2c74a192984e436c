// SPDX-License-Identifier: BSD-3-Clause
//
// The solver of LU: its arrays and one time step. An iteration begins with the residual, and with
// the fields that the sweeps linearise around; the specification ends one with those of the next.
#pragma once

#include <vector>

#include "npb/carried.hpp"
#include "npb/flow/flow.hpp"
#include "npb/lu/sweeps.hpp"

namespace npb::lu {

struct Solver {
  explicit Solver(const flow::ProblemClass& problem)
      : flow(make_flow(problem, flow::Speed::left_out)) {}

  void step() {
    fill_ghosts(flow);
    compute_residual(flow);
    scale_residual(flow);
    solve_lower(flow);
    solve_upper(flow);
    add_change(flow, 1 / (omega * (2 - omega)));
  }

  std::vector<Carried> carried() { return {{"u", flow.u.get(), 5 * flow.points()}}; }

  Flow flow;
};

}  // namespace npb::lu
