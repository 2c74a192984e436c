// npb_sp: a compressible flow by implicit time steps with scalar systems of five diagonals (NAS
// Parallel Benchmarks, RNR-94-007, section 3). ../README.md shows how to run it.
#include <string>

#include "job/stopwatch.hpp"
#include "npb/program.hpp"
#include "npb/region.hpp"
#include "npb/sp/classes.hpp"
#include "npb/sp/factors.hpp"
#include "npb/sp/flow.hpp"

namespace npb::sp {
namespace {

void time_step(Flow& flow) {
  fill_ghosts(flow);
  compute_rhs(flow);
  solve_factors(flow);
  add_change(flow);
}

std::vector<Check> checks_of(Flow& flow, const ProblemClass& problem) {
  const Five error = error_norm(flow);
  fill_ghosts(flow);
  compute_rhs(flow);
  const Five residual = residual_norm(flow);
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

Result solve(const Options& options) {
  const ProblemClass& problem = class_of(options.problem_class);
  const auto published_iterations = static_cast<std::uint64_t>(problem.iterations);
  const std::string n = std::to_string(problem.n);
  Result result{.problem = n + " x " + n + " x " + n + " points",
                .checks = {},
                .iterations = options.iterations > 0 ? options.iterations : published_iterations,
                .published_iterations = published_iterations};
  const job::Stopwatch setup_watch;
  Flow flow = make_flow(problem);
  result.setup_s = setup_watch.seconds();

  const job::Stopwatch loop_watch;
  mark_begin();
  for (std::uint64_t i = 1; i <= result.iterations; ++i) {
    mark_iteration(i);
    time_step(flow);
  }
  mark_end();
  result.loop_s = loop_watch.seconds();
  result.checks = checks_of(flow, problem);
  return result;
}

}  // namespace
}  // namespace npb::sp

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_sp",
      .purpose = "SP of the NAS Parallel Benchmarks: a flow by scalar systems of five diagonals",
      .examples =
          "Examples:\n"
          "  npb_sp --class W                      verified, 400 time steps\n"
          "  npb_sp --class B --iterations 5       too few to be verified",
      .add_options = {},
      .solve = npb::sp::solve};
  return npb::run_program(argc, argv, program);
}
