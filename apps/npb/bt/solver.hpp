// SPDX-License-Identifier: BSD-3-Clause
//
// The solver of BT: its arrays and one time step.
#pragma once

#include <vector>

#include "npb/bt/blocks.hpp"
#include "npb/carried.hpp"
#include "npb/flow/flow.hpp"

namespace npb::bt {

struct Solver {
  explicit Solver(const flow::ProblemClass& problem)
      : flow(make_flow(problem, flow::Speed::left_out)), eliminated(flow) {}

  void step() {
    fill_ghosts(flow);
    compute_residual(flow);
    scale_residual(flow);
    solve_blocks(flow, eliminated);
    add_change(flow, 1);
  }

  std::vector<Carried> carried() { return {{"u", flow.u.get(), 5 * flow.points()}}; }

  Flow flow;
  Eliminated eliminated;
};

}  // namespace npb::bt
