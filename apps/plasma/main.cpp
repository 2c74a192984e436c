// SPDX-License-Identifier: BSD-3-Clause
//
// plasma: particles in cells, which a killed job goes on with on any number of ranks. README.md
// shows how to run it.
#include <mpi.h>

#include <stdexcept>

#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stopwatch.hpp"
#include "options.hpp"
#include "plasma.hpp"
#include "report.hpp"
#include "state.hpp"

namespace plasma {
namespace {

void simulate(const Options& options) {
  const Rows rows{options.cells, job::this_rank(), job::rank_count()};
  job::on_every_rank([&] {
    if (rows.count() == 0) throw std::runtime_error("there are more ranks than rows of --cells");
  });
  State state(rows, options.pool);
  const bool goes_on = state.restore();
  Plasma plasma(rows, state.particles(), state.potential());
  goes_on ? plasma.migrate() : plasma.begin(options.particles);
  Outcome outcome;
  outcome.first_step = state.step;
  outcome.old_ranks = state.old_ranks();
  MPI_Barrier(MPI_COMM_WORLD);
  const job::Stopwatch watch;
  while (state.step < options.steps) {
    ++state.step;
    plasma.step(state.step);
    if (state.step % options.every == 0 || state.step == options.steps) state.commit();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  outcome.loop_s = watch.seconds();
  outcome.particles = plasma.particle_count();
  outcome.hash = plasma.hash();
  print_report(options, outcome);
}

}  // namespace
}  // namespace plasma

int main(int argc, char** argv) {
  return job::run(argc, argv, "plasma", [&](bool speaks) {
    plasma::simulate(plasma::parse_options(argc, argv, speaks));
  });
}
