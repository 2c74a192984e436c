// SPDX-License-Identifier: BSD-3-Clause
//
// matpower: powers of a graph's adjacency matrix, by Cannon's algorithm over MPI-IO. README.md
// shows how to run it.
#include <mpi.h>

#include <cstdio>
#include <exception>

#include "job.hpp"
#include "job/collective.hpp"
#include "options.hpp"
#include "report.hpp"

namespace matpower {
namespace {

// Returns the exit code. An error that all ranks share ends the job in order, any other one at
// once.
int run(int argc, char** argv) {
  const int rank = job::this_rank();
  try {
    const Options options = parse_options(argc, argv, rank == 0);
    print_report(options, run_job(options));
    return 0;
  } catch (const OptionsEnd& end) {
    return end.code;
  } catch (const job::SharedError& error) {
    if (rank == 0) std::fprintf(stderr, "matpower: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "matpower: rank %d: %s\n", rank, error.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}

}  // namespace
}  // namespace matpower

int main(int argc, char** argv) {
  int thread_level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &thread_level);
  const int code = matpower::run(argc, argv);
  MPI_Finalize();
  return code;
}
