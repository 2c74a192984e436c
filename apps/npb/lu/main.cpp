// SPDX-License-Identifier: BSD-3-Clause
//
// npb_lu: a compressible flow by symmetric successive over-relaxation (NAS Parallel Benchmarks,
// RNR-94-007, section 3). ../README.md shows how to run it.
#include "npb/flow/run.hpp"
#include "npb/lu/classes.hpp"
#include "npb/lu/solver.hpp"
#include "npb/lu/surface.hpp"

namespace npb::lu {
namespace {

Result solve(const Options& options) {
  const ProblemClass& problem = class_of(options.problem_class);
  return flow::run<Solver>(options, problem.flow, [&](Solver& solver, std::vector<Check>& checks) {
    checks.push_back(
        {"surface", surface_integral(solver.flow), problem.surface_integral, flow::tolerance});
  });
}

}  // namespace
}  // namespace npb::lu

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_lu",
      .purpose = "LU of the NAS Parallel Benchmarks: a flow by successive over-relaxation",
      .examples =
          "Examples:\n"
          "  npb_lu --class W                      verified, 300 time steps\n"
          "  npb_lu --class B --iterations 5       too few to be verified",
      .choices = {},
      .solve = npb::lu::solve};
  return npb::run_program(argc, argv, program);
}
