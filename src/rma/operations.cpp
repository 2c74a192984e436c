// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: a displacement is translated, and the operation is noted. Within a node
// puts and gets (direct_copy.hpp) and accumulates (direct_accumulate.hpp) are made here.
#include "mpi/element_types.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/direct_accumulate.hpp"
#include "rma/direct_copy.hpp"
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

// Whether a call surely is the MPI library's as it is, on a window whose memory is not the pool's.
// Then all that is left is a jump, with every argument where it is: so this is asked first, inlined
// by force, and the rest of a call is a function of its own.
[[gnu::always_inline]] inline bool passes(MPI_Win win) {
  Window* window = window_table.glance(win);
  if (window == nullptr || window->in_pool()) return false;
  window->pending.store(true, std::memory_order_relaxed);
  return true;
}

// Calls with a request exist in passive-target epochs only. What was made here is done, and MPI's
// request of nothing is too.
template <typename... Request>
constexpr bool has_request = sizeof...(Request) != 0;

template <typename Call, Towards towards, typename Memory, typename Count, typename... Request>
[[gnu::noinline]] int call_or_copy(Memory origin, Count origin_count, MPI_Datatype origin_type,
                                   int target, MPI_Aint at, Count target_count,
                                   MPI_Datatype target_type, MPI_Win win, Request... request) {
  if (Window* window = find_window(win)) {
    int error = MPI_SUCCESS;
    if ((!has_request<Request...> || window->locks != 0) &&
        is_made_here(*window,
                     {towards,
                      const_cast<void*>(static_cast<const void*>(origin)),
                      {origin_count, origin_type},
                      target,
                      at,
                      {target_count, target_type}},
                     error)) {
      if (!has_request<Request...> || error != MPI_SUCCESS) return error;
      origin_count = target_count = 0;
    }
    at = window->operation(target, at);
  }
  return Call::real(origin, origin_count, origin_type, target, at, target_count, target_type, win,
                    request...);
}

template <typename Call, Towards towards, typename Memory, typename Count, typename... Request>
int transfer(Memory origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
             Count target_count, MPI_Datatype target_type, MPI_Win win, Request... request) {
  return (passes(win)
              ? Call::real
              : call_or_copy<Call, towards, Memory, Count, Request...>)(origin, origin_count,
                                                                        origin_type, target, at,
                                                                        target_count, target_type,
                                                                        win, request...);
}

Accumulation accumulation(const void* memory, Side origin, int target, MPI_Aint at, Side at_target,
                          MPI_Op op) {
  return {memory, origin, false, nullptr, {}, target, at, at_target, op};
}

Accumulation fetching(const void* memory, Side origin, void* result, Side at_result, int target,
                      MPI_Aint at, Side at_target, MPI_Op op) {
  return {memory, origin, true, result, at_result, target, at, at_target, op};
}

template <typename Call, typename Count, typename... Request>
int accumulate_by(const void* origin, Count origin_count, MPI_Datatype origin_type, int target,
                  MPI_Aint at, Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                  Request... request) {
  Window* window = find_window(win);
  if (window != nullptr) {
    int error = MPI_SUCCESS;
    if ((!has_request<Request...> || window->locks != 0) &&
        is_accumulated_here(*window,
                            accumulation(origin, {origin_count, origin_type}, target, at,
                                         {target_count, target_type}, op),
                            error)) {
      if (!has_request<Request...> || error != MPI_SUCCESS) return error;
      origin_count = target_count = 0;
    }
    at = window->operation(target, at);
  }
  return Call::real(origin, origin_count, origin_type, target, at, target_count, target_type, op,
                    win, request...);
}

template <typename Call, typename Count, typename... Request>
int get_accumulate_by(const void* origin, Count origin_count, MPI_Datatype origin_type,
                      void* result, Count result_count, MPI_Datatype result_type, int target,
                      MPI_Aint at, Count target_count, MPI_Datatype target_type, MPI_Op op,
                      MPI_Win win, Request... request) {
  Window* window = find_window(win);
  if (window != nullptr) {
    int error = MPI_SUCCESS;
    if ((!has_request<Request...> || window->locks != 0) &&
        is_accumulated_here(
            *window,
            fetching(origin, {origin_count, origin_type}, result, {result_count, result_type},
                     target, at, {target_count, target_type}, op),
            error)) {
      if (!has_request<Request...> || error != MPI_SUCCESS) return error;
      origin_count = result_count = target_count = 0;
    }
    at = window->operation(target, at);
  }
  return Call::real(origin, origin_count, origin_type, result, result_count, result_type, target,
                    at, target_count, target_type, op, win, request...);
}

}  // namespace

int put(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  return transfer<WindowCalls::Put, Towards::target>(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win);
}

int get(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  return transfer<WindowCalls::Get, Towards::origin>(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win);
}

int accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
               MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return accumulate_by<WindowCalls::Accumulate>(origin, origin_count, origin_type, target, at,
                                                target_count, target_type, op, win);
}

int get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                   int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return get_accumulate_by<WindowCalls::Get_accumulate>(origin, origin_count, origin_type, result,
                                                        result_count, result_type, target, at,
                                                        target_count, target_type, op, win);
}

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint at,
                 MPI_Op op, MPI_Win win) {
  Window* window = find_window(win);
  if (window != nullptr) {
    int error = MPI_SUCCESS;
    const Side one = {1, type};
    // Derived types are MPI's to refuse.
    if (element_of(type) != Element::other &&
        is_accumulated_here(*window, fetching(origin, one, result, one, target, at, one, op),
                            error)) {
      return error;
    }
    at = window->operation(target, at);
  }
  return WindowCalls::Fetch_and_op::real(origin, result, type, target, at, op, win);
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                     int target, MPI_Aint at, MPI_Win win) {
  Window* window = find_window(win);
  if (window != nullptr) {
    int error = MPI_SUCCESS;
    if (is_accumulated_here(*window, Swap{origin, compare, result, type, target, at}, error)) {
      return error;
    }
    at = window->operation(target, at);
  }
  return WindowCalls::Compare_and_swap::real(origin, compare, result, type, target, at, win);
}

int rput(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return transfer<WindowCalls::Rput, Towards::target>(origin, origin_count, origin_type, target, at,
                                                      target_count, target_type, win, request);
}

int rget(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return transfer<WindowCalls::Rget, Towards::origin>(origin, origin_count, origin_type, target, at,
                                                      target_count, target_type, win, request);
}

int raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
  return accumulate_by<WindowCalls::Raccumulate>(origin, origin_count, origin_type, target, at,
                                                 target_count, target_type, op, win, request);
}

int rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                    int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                    MPI_Request* request) {
  return get_accumulate_by<WindowCalls::Rget_accumulate>(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win, request);
}

#if MPI_VERSION >= 4
int put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
          MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return transfer<WindowCalls::Put_c, Towards::target>(origin, origin_count, origin_type, target,
                                                       at, target_count, target_type, win);
}

int get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
          MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return transfer<WindowCalls::Get_c, Towards::origin>(origin, origin_count, origin_type, target,
                                                       at, target_count, target_type, win);
}

int accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                 MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                 MPI_Win win) {
  return accumulate_by<WindowCalls::Accumulate_c>(origin, origin_count, origin_type, target, at,
                                                  target_count, target_type, op, win);
}

int get_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                     void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                     MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win) {
  return get_accumulate_by<WindowCalls::Get_accumulate_c>(origin, origin_count, origin_type, result,
                                                          result_count, result_type, target, at,
                                                          target_count, target_type, op, win);
}

int rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
           MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win,
           MPI_Request* request) {
  return transfer<WindowCalls::Rput_c, Towards::target>(
      origin, origin_count, origin_type, target, at, target_count, target_type, win, request);
}

int rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
           MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return transfer<WindowCalls::Rget_c, Towards::origin>(
      origin, origin_count, origin_type, target, at, target_count, target_type, win, request);
}

int raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                  MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                  MPI_Win win, MPI_Request* request) {
  return accumulate_by<WindowCalls::Raccumulate_c>(origin, origin_count, origin_type, target, at,
                                                   target_count, target_type, op, win, request);
}

int rget_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                      void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                      MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                      MPI_Win win, MPI_Request* request) {
  return get_accumulate_by<WindowCalls::Rget_accumulate_c>(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win, request);
}

#endif

}  // namespace perdure
