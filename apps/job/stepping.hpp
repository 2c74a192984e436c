// SPDX-License-Identifier: BSD-3-Clause
//
// Stepping: what programs have in common that go through steps, and keep their state in a pool that
// another number of ranks may go on with.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "job/stepping_options.hpp"
#include "job/stopwatch.hpp"

namespace job {

struct Stepped {
  std::uint64_t first_step = 0;
  unsigned old_ranks = 0;  // that made the pool, if others than these; else 0
  double loop_s = 0;
};

// Collective. `state` has `step`, old_ranks() and commit(); step(number) does one.
template <typename State, typename Step>
Stepped go_through(const Stepping& options, State& state, const Step& step) {
  Stepped done;
  done.first_step = state.step;
  done.old_ranks = state.old_ranks();
  MPI_Barrier(MPI_COMM_WORLD);
  const Stopwatch watch;
  while (state.step < options.steps) {
    step(++state.step);
    if (state.step % options.every == 0 || state.step == options.steps) state.commit();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  done.loop_s = watch.seconds();
  return done;
}

}  // namespace job
