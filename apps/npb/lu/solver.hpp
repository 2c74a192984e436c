// The solver of LU: its arrays and one time step. An iteration begins with the residual that the
// one before left, and linearises around the fields that were derived then.
#pragma once

#include <vector>

#include "npb/carried.hpp"
#include "npb/flow/flow.hpp"
#include "npb/lu/sweeps.hpp"

namespace npb::lu {

struct Solver {
  explicit Solver(const flow::ProblemClass& problem)
      : flow(make_flow(problem, flow::Speed::left_out)) {}

  void start() {
    fill_ghosts(flow);
    compute_residual(flow);
  }

  void step() {
    scale_residual(flow);
    solve_lower(flow);
    solve_upper(flow);
    add_change(flow, 1 / (omega * (2 - omega)));
    fill_ghosts(flow);
    compute_residual(flow);
  }

  std::vector<Carried> carried() {
    return {{"u", flow.u.get(), 5 * flow.points()},
            {"rhs", flow.rhs.get(), 5 * flow.points()},
            {"rho_inverse", flow.rho_inverse.get(), flow.points()},
            {"qs", flow.qs.get(), flow.points()}};
  }

  Flow flow;
};

}  // namespace npb::lu
