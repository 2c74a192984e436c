#include "rma/mpi_calls.hpp"

#include <mutex>

#include "base/fork_guard.hpp"
#include "mpi/forked_child.hpp"
#include "mpi/narrow_call.hpp"
#include "mpi/served_mpi.hpp"
#include "rma/window_calls.hpp"

PERDURE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
#if MPI_VERSION >= 4
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
#endif

namespace perdure {
namespace {

void bind_all() {
#define PERDURE_BIND(x, ...) WindowCalls::x::bind();
  PERDURE_WINDOW_CALLS(PERDURE_BIND)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_BIND)
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_NARROW_IF_ABSENT)
#endif
#undef PERDURE_BIND
}

void pass_all_on() {
#define PERDURE_PASS_ON(x, ...) pass_on(perdure_taken_##x);
  PERDURE_WINDOW_CALLS(PERDURE_PASS_ON)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_PASS_ON)
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_NARROW_IF_ABSENT)
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

// Those that must be looked at even while no window is persistent.
void take_creation_and_fence() {
  direct<WindowCalls::Win_create>(true, from_caller<win_create>);
  direct<WindowCalls::Win_allocate>(true, from_caller<win_allocate>);
  direct<WindowCalls::Win_allocate_shared>(true, from_caller<win_allocate_shared>);
  direct<WindowCalls::Win_create_dynamic>(true, from_caller<win_create_dynamic>);
  direct<WindowCalls::Win_fence>(true, win_fence);
#if MPI_VERSION >= 4
  direct<WindowCalls::Win_create_c>(true, from_caller<win_create_c>);
  direct<WindowCalls::Win_allocate_c>(true, from_caller<win_allocate_c>);
  direct<WindowCalls::Win_allocate_shared_c>(true, from_caller<win_allocate_shared_c>);
#endif
}

void take_operations(bool take) {
  direct<WindowCalls::Put>(take, put);
  direct<WindowCalls::Get>(take, get);
  direct<WindowCalls::Accumulate>(take, accumulate);
  direct<WindowCalls::Get_accumulate>(take, get_accumulate);
  direct<WindowCalls::Fetch_and_op>(take, fetch_and_op);
  direct<WindowCalls::Compare_and_swap>(take, compare_and_swap);
  direct<WindowCalls::Rput>(take, rput);
  direct<WindowCalls::Rget>(take, rget);
  direct<WindowCalls::Raccumulate>(take, raccumulate);
  direct<WindowCalls::Rget_accumulate>(take, rget_accumulate);
#if MPI_VERSION >= 4
  direct<WindowCalls::Put_c>(take, put_c);
  direct<WindowCalls::Get_c>(take, get_c);
  direct<WindowCalls::Accumulate_c>(take, accumulate_c);
  direct<WindowCalls::Get_accumulate_c>(take, get_accumulate_c);
  direct<WindowCalls::Rput_c>(take, rput_c);
  direct<WindowCalls::Rget_c>(take, rget_c);
  direct<WindowCalls::Raccumulate_c>(take, raccumulate_c);
  direct<WindowCalls::Rget_accumulate_c>(take, rget_accumulate_c);
#endif
}

}  // namespace

void bind_window_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!mpi_is_served().ok()) return pass_all_on();
    bind_all();
    take_creation_and_fence();
  });
}

void take_window_calls(bool take) {
  if (take) in_forked_children(refuse_all_in_child);
  take_operations(take);
  direct<WindowCalls::Win_attach>(take, win_attach);
  direct<WindowCalls::Win_detach>(take, win_detach);
  direct<WindowCalls::Win_free>(take, win_free);
  direct<WindowCalls::Win_shared_query>(take, win_shared_query);
  direct<WindowCalls::Win_get_attr>(take, win_get_attr);
  direct<WindowCalls::Win_get_info>(take, win_get_info);
  direct<WindowCalls::Win_set_info>(take, win_set_info);
  direct<WindowCalls::Win_complete>(take, win_complete);
  direct<WindowCalls::Win_wait>(take, win_wait);
  direct<WindowCalls::Win_test>(take, win_test);
  direct<WindowCalls::Win_lock>(take, win_lock);
  direct<WindowCalls::Win_lock_all>(take, win_lock_all);
  direct<WindowCalls::Win_unlock>(take, win_unlock);
  direct<WindowCalls::Win_unlock_all>(take, win_unlock_all);
  direct<WindowCalls::Win_flush_all>(take, win_flush_all);
#if MPI_VERSION >= 4
  direct<WindowCalls::Win_shared_query_c>(take, win_shared_query_c);
#endif
}

}  // namespace perdure
