// SPDX-License-Identifier: BSD-3-Clause
//
// mesh: a block-adaptive mesh, which a killed job goes on with on any number of ranks. README.md
// shows how to run it.
#include <mpi.h>

#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stepping.hpp"
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
  const job::Stepped stepped = job::go_through(options, state, [&](std::uint64_t step) {
    mesh.step(step);
    if (step % options.adapt == 0) mesh.adapt();
  });
  print_report(options, {stepped, mesh.block_count(), mesh.hash()});
}

}  // namespace
}  // namespace mesh

int main(int argc, char** argv) {
  return job::run(argc, argv, "mesh",
                  [&](bool speaks) { mesh::simulate(mesh::parse_options(argc, argv, speaks)); });
}
