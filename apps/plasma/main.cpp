// SPDX-License-Identifier: BSD-3-Clause
//
// plasma: particles in cells, which a killed job goes on with on any number of ranks. README.md
// shows how to run it.
#include <mpi.h>

#include <stdexcept>

#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stepping.hpp"
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
  const job::Stepped stepped =
      job::go_through(options, state, [&](std::uint64_t step) { plasma.step(step); });
  print_report(options, {stepped, plasma.particle_count(), plasma.hash()});
}

}  // namespace
}  // namespace plasma

int main(int argc, char** argv) {
  return job::run(argc, argv, "plasma", [&](bool speaks) {
    plasma::simulate(plasma::parse_options(argc, argv, speaks));
  });
}
