// SPDX-License-Identifier: BSD-3-Clause
//
// The solver of SP: its arrays and one time step.
#pragma once

#include <algorithm>
#include <vector>

#include "npb/carried.hpp"
#include "npb/flow/flow.hpp"
#include "npb/sp/factors.hpp"

namespace npb::sp {

struct Solver {
  explicit Solver(const flow::ProblemClass& problem)
      : flow(make_flow(problem, flow::Speed::derived)) {
    const Index size = lhs_width * flow.points();
    lhs = Array<double>(size);
    std::fill(lhs.get(), lhs.get() + size, 0.0);
  }

  void step() {
    fill_ghosts(flow);
    compute_residual(flow);
    scale_residual(flow);
    solve_factors(flow, lhs.get());
    add_change(flow, 1);
  }

  std::vector<Carried> carried() { return {{"u", flow.u.get(), 5 * flow.points()}}; }

  Flow flow;
  Array<double> lhs;
};

}  // namespace npb::sp
