// SPDX-License-Identifier: BSD-3-Clause
//
// npb_sp: a compressible flow by implicit time steps with scalar systems of five diagonals (NAS
// Parallel Benchmarks, RNR-94-007, section 3). ../README.md shows how to run it.
#include "npb/flow/run.hpp"
#include "npb/sp/classes.hpp"
#include "npb/sp/solver.hpp"

namespace npb::sp {
namespace {

Result solve(const Options& options) {
  return flow::run<Solver>(options, class_of(options.problem_class));
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
      .choices = {},
      .solve = npb::sp::solve};
  return npb::run_program(argc, argv, program);
}
