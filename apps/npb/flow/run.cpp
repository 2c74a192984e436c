// SPDX-License-Identifier: BSD-3-Clause
#include "npb/flow/run.hpp"

#include <string>

namespace npb::flow {

std::vector<Check> norm_checks(Flow& flow, const ProblemClass& problem) {
  fill_ghosts(flow);
  compute_residual(flow);
  const Five residual = residual_norm(flow);
  const Five error = error_norm(flow);
  std::vector<Check> checks;
  for (std::size_t m = 0; m < 5; ++m) {
    checks.push_back(
        {"residual " + std::to_string(m + 1), residual[m], problem.residual[m], tolerance});
  }
  for (std::size_t m = 0; m < 5; ++m) {
    checks.push_back({"error " + std::to_string(m + 1), error[m], problem.error[m], tolerance});
  }
  return checks;
}

}  // namespace npb::flow
