// SPDX-License-Identifier: BSD-3-Clause
//
// mesh: a block-adaptive mesh, which a killed job goes on with on any number of ranks. README.md
// shows how to run it.
#include <mpi.h>

#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stopwatch.hpp"
#include "mesh.hpp"
#include "options.hpp"
#include "report.hpp"
#include "state.hpp"

namespace mesh {
namespace {

void simulate(const Options& options) {
  State state(options.pool, options.levels);
  const bool goes_on = state.restore();
  Mesh mesh(state.blocks(), options.levels);
  goes_on ? mesh.gather() : mesh.begin();
  Outcome outcome;
  outcome.first_step = state.step;
  outcome.old_ranks = state.old_ranks();
  MPI_Barrier(MPI_COMM_WORLD);
  const job::Stopwatch watch;
  while (state.step < options.steps) {
    ++state.step;
    mesh.step(state.step);
    if (state.step % options.adapt == 0) mesh.adapt();
    if (state.step % options.every == 0 || state.step == options.steps) state.commit();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  outcome.loop_s = watch.seconds();
  outcome.blocks = mesh.block_count();
  outcome.hash = mesh.hash();
  print_report(options, outcome);
}

}  // namespace
}  // namespace mesh

int main(int argc, char** argv) {
  return job::run(argc, argv, "mesh",
                  [&](bool speaks) { mesh::simulate(mesh::parse_options(argc, argv, speaks)); });
}
