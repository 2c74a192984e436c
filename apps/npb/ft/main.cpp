// SPDX-License-Identifier: BSD-3-Clause
//
// npb_ft: the heat equation on a periodic box, solved in the spectrum (NAS Parallel Benchmarks,
// RNR-94-007, section 2.2.5). ../README.md shows how to run it.
#include <algorithm>
#include <complex>
#include <string>
#include <vector>

#include "job/stopwatch.hpp"
#include "npb/ft/classes.hpp"
#include "npb/ft/solver.hpp"
#include "npb/loop.hpp"
#include "npb/program.hpp"

namespace npb::ft {
namespace {

std::vector<Check> checks_of(const Progress& progress, const ProblemClass& problem) {
  std::vector<Check> checks;
  const std::size_t count = std::min<std::size_t>(progress.iteration, problem.checksums.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string sum = "sum " + std::to_string(i + 1);
    const std::complex<double> published = problem.checksums[i];
    checks.push_back({sum + " re", progress.checksums[i][0], published.real(), tolerance});
    checks.push_back({sum + " im", progress.checksums[i][1], published.imag(), tolerance});
  }
  return checks;
}

Result solve(const Options& options) {
  const ProblemClass& problem = class_of(options.problem_class);
  Result result =
      planned(options, points_text(problem.nx, problem.ny, problem.nz), problem.checksums.size());
  const job::Stopwatch setup_watch;
  Solver solver(problem);
  result.setup_s = setup_watch.seconds();

  Progress progress;
  State state(options.state);
  for (const Carried& array : solver.carried()) state.object(array);
  state.scalar("progress", progress);
  result.loop = run_loop(state, result.iterations, [&] { solver.iterate(progress); });
  result.checks = checks_of(progress, problem);
  return result;
}

}  // namespace
}  // namespace npb::ft

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_ft",
      .purpose = "FT of the NAS Parallel Benchmarks: the heat equation by Fourier transforms",
      .examples =
          "Examples:\n"
          "  npb_ft --class A                      verified, 6 iterations\n"
          "  npb_ft --class B --iterations 5       too few to be verified",
      .choices = {},
      .solve = npb::ft::solve};
  return npb::run_program(argc, argv, program);
}
