// SPDX-License-Identifier: BSD-3-Clause
//
// Where the calls on windows lead: to Perdure's functions, or to the MPI library.
#include <mutex>

#include "base/fork_guard.hpp"
#include "mpi/forked_child.hpp"
#include "mpi/narrow_call.hpp"
#include "mpi/served_mpi.hpp"
#include "rma/mpi_calls.hpp"
#include "rma/window_calls.hpp"
#include "rma/window_record.hpp"

PERDURE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
#if MPI_VERSION >= 4
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
#endif

#define PERDURE_NARROW_WINDOW(x, ours, narrow, ...) PERDURE_NARROW_IF_ABSENT(x, narrow, __VA_ARGS__)

namespace perdure {
namespace {

void bind_all() {
#define PERDURE_BIND(x, ...) WindowCalls::x::bind();
  PERDURE_WINDOW_CALLS(PERDURE_BIND)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_BIND)
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_NARROW_WINDOW)
#endif
#undef PERDURE_BIND
}

void pass_all_on() {
#define PERDURE_PASS_ON(x, ...) pass_on(perdure_taken_##x);
  PERDURE_WINDOW_CALLS(PERDURE_PASS_ON)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_PASS_ON)
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_NARROW_WINDOW)
#endif
#undef PERDURE_PASS_ON
}

void refuse_all_in_child() {
#define PERDURE_REFUSE(x, ...) refuse_in_child(perdure_taken_##x);
  PERDURE_WINDOW_CALLS(PERDURE_REFUSE)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_REFUSE)
#endif
#undef PERDURE_REFUSE
}

#define PERDURE_TAKE_CREATION(x, ours, ...) direct<WindowCalls::x>(true, from_caller<ours>);
#define PERDURE_TAKE(x, ours, ...) direct<WindowCalls::x>(take, ours);

// Those that must be looked at even while no window is persistent.
void take_creation_and_fence() {
  constexpr bool take = true;
  PERDURE_CREATION_CALLS(PERDURE_TAKE_CREATION)
  PERDURE_FENCE_CALL(PERDURE_TAKE)
#if MPI_VERSION >= 4
  PERDURE_WIDE_CREATION_CALLS(PERDURE_TAKE_CREATION)
#endif
}

}  // namespace

void bind_window_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!mpi_is_served().ok()) return pass_all_on();
    bind_all();
    take_creation_and_fence();
    record_window_calls();
  });
}

void take_window_calls(bool take) {
  if (take) in_forked_children(refuse_all_in_child);
  PERDURE_OPEN_WINDOW_CALLS(PERDURE_TAKE)
#if MPI_VERSION >= 4
  PERDURE_WIDE_OPEN_WINDOW_CALLS(PERDURE_TAKE)
#endif
}

}  // namespace perdure
