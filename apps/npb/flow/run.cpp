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

Result planned_result(const Options& options, const ProblemClass& problem) {
  const auto published_iterations = static_cast<std::uint64_t>(problem.iterations);
  const std::string n = std::to_string(problem.n);
  return {.problem = n + " x " + n + " x " + n + " points",
          .checks = {},
          .iterations = options.iterations > 0 ? options.iterations : published_iterations,
          .published_iterations = published_iterations,
          .loop = {}};
}

}  // namespace npb::flow
