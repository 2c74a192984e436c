// SPDX-License-Identifier: BSD-3-Clause
//
// eddy: decaying eddies in a periodic square, an incompressible flow whose exact solution is known.
// README.md shows how to run it.
#include <cstdio>
#include <stdexcept>

#include "eddy/exact.hpp"
#include "eddy/flow_step.hpp"
#include "eddy/program.hpp"
#include "job/stopwatch.hpp"
#include "npb/loop.hpp"
#include "npb/ranks.hpp"

namespace eddy {
namespace {

namespace ranks = npb::ranks;

Result solve(const Options& options) {
  const job::Stopwatch setup_watch;
  const Grid grid = make_grid(options.n);
  Result result;
  result.h = grid.h();
  result.dt = options.dt > 0 ? options.dt : grid.h() / 8;
  State state(grid);
  Work work(grid);
  set_initial(grid, result.dt, state);
  result.setup_s = setup_watch.seconds();

  npb::State kept(options.state);
  for (const npb::Carried& array : state.carried(grid)) kept.object(array);
  result.loop = npb::run_loop(kept, options.steps, [&] { advance(grid, result.dt, state, work); });
  result.time = result.dt * static_cast<double>(options.steps);
  result.error = error_of(grid, result.time, state.vx.get(), state.vy.get(), state.pr.get());
  result.divergence = divergence_max(grid, state);
  return result;
}

int solve_and_report(const Options& options) {
  Result result = solve(options);
  result.setup_s = ranks::max(result.setup_s);
  result.loop.open_s = ranks::max(result.loop.open_s);
  result.loop.loop_s = ranks::max(result.loop.loop_s);
  result.loop.loop_cpu_s = ranks::max(result.loop.loop_cpu_s);
  result.loop.close_s = ranks::max(result.loop.close_s);
  result.loop.persist_s = ranks::max(result.loop.persist_s);
  result.loop.copy_s = ranks::max(result.loop.copy_s);
  result.loop.state_bytes = ranks::sum(result.loop.state_bytes);
  const std::uint64_t arrays = ranks::sum(npb::array_bytes);
  if (ranks::rank() == 0) {
    (options.json ? print_json : print_text)(options, result, arrays);
    std::fflush(stdout);
  }
  return verified(result) ? 0 : 1;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  namespace ranks = npb::ranks;
  ranks::start(argc, argv);
  int code = 0;
  try {
    const auto options = eddy::parse(argc, argv, code);
    if (options) code = eddy::solve_and_report(*options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "eddy: rank %d has too little memory; take a smaller --n\n",
                 ranks::rank());
    ranks::abort();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eddy: rank %d: %s\n", ranks::rank(), error.what());
    ranks::abort();
  }
  ranks::finish();
  return code;
}
