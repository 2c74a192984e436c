// SPDX-License-Identifier: BSD-3-Clause
//
// npb_bt: a compressible flow by implicit time steps with block tridiagonal systems (NAS Parallel
// Benchmarks, RNR-94-007, section 3). ../README.md shows how to run it.
#include "npb/bt/classes.hpp"
#include "npb/bt/solver.hpp"
#include "npb/flow/run.hpp"

namespace npb::bt {
namespace {

Result solve(const Options& options) {
  return flow::run<Solver>(options, class_of(options.problem_class));
}

}  // namespace
}  // namespace npb::bt

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_bt",
      .purpose = "BT of the NAS Parallel Benchmarks: a flow by block tridiagonal systems",
      .examples =
          "Examples:\n"
          "  npb_bt --class W                      verified, 200 time steps\n"
          "  npb_bt --class B --iterations 5       too few to be verified",
      .choices = {},
      .solve = npb::bt::solve};
  return npb::run_program(argc, argv, program);
}
