// SPDX-License-Identifier: BSD-3-Clause
//
// matpower: powers of a graph's adjacency matrix, by Cannon's algorithm over MPI-IO. README.md
// shows how to run it.
#include "job.hpp"
#include "job/run.hpp"
#include "options.hpp"
#include "report.hpp"

int main(int argc, char** argv) {
  return job::run(argc, argv, "matpower", [&](bool speaks) {
    const matpower::Options options = matpower::parse_options(argc, argv, speaks);
    matpower::print_report(options, matpower::run_job(options));
  });
}
