// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: a displacement is translated, and the operation is noted.
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

// Where in the real window `at` of `target` is; unchanged where the window is not persistent.
// Inlined by force: as a call it would make each operation save all its arguments.
[[gnu::always_inline]] inline MPI_Aint place(MPI_Win win, int target, MPI_Aint at) {
  Window* window = find_window(win);
  return window == nullptr ? at : window->operation(target, at);
}

}  // namespace

int put(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  return WindowCalls::Put::real(origin, origin_count, origin_type, target, place(win, target, at),
                                target_count, target_type, win);
}

int get(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  return WindowCalls::Get::real(origin, origin_count, origin_type, target, place(win, target, at),
                                target_count, target_type, win);
}

int accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
               MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return WindowCalls::Accumulate::real(origin, origin_count, origin_type, target,
                                       place(win, target, at), target_count, target_type, op, win);
}

int get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                   int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return WindowCalls::Get_accumulate::real(origin, origin_count, origin_type, result, result_count,
                                           result_type, target, place(win, target, at),
                                           target_count, target_type, op, win);
}

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint at,
                 MPI_Op op, MPI_Win win) {
  return WindowCalls::Fetch_and_op::real(origin, result, type, target, place(win, target, at), op,
                                         win);
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                     int target, MPI_Aint at, MPI_Win win) {
  return WindowCalls::Compare_and_swap::real(origin, compare, result, type, target,
                                             place(win, target, at), win);
}

int rput(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rput::real(origin, origin_count, origin_type, target, place(win, target, at),
                                 target_count, target_type, win, request);
}

int rget(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget::real(origin, origin_count, origin_type, target, place(win, target, at),
                                 target_count, target_type, win, request);
}

int raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
  return WindowCalls::Raccumulate::real(origin, origin_count, origin_type, target,
                                        place(win, target, at), target_count, target_type, op, win,
                                        request);
}

int rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                    int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                    MPI_Request* request) {
  return WindowCalls::Rget_accumulate::real(origin, origin_count, origin_type, result, result_count,
                                            result_type, target, place(win, target, at),
                                            target_count, target_type, op, win, request);
}

#if MPI_VERSION >= 4
int put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
          MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return WindowCalls::Put_c::real(origin, origin_count, origin_type, target, place(win, target, at),
                                  target_count, target_type, win);
}

int get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
          MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return WindowCalls::Get_c::real(origin, origin_count, origin_type, target, place(win, target, at),
                                  target_count, target_type, win);
}

int accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                 MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                 MPI_Win win) {
  return WindowCalls::Accumulate_c::real(origin, origin_count, origin_type, target,
                                         place(win, target, at), target_count, target_type, op,
                                         win);
}

int get_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                     void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                     MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win) {
  return WindowCalls::Get_accumulate_c::real(
      origin, origin_count, origin_type, result, result_count, result_type, target,
      place(win, target, at), target_count, target_type, op, win);
}

int rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
           MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win,
           MPI_Request* request) {
  return WindowCalls::Rput_c::real(origin, origin_count, origin_type, target,
                                   place(win, target, at), target_count, target_type, win, request);
}

int rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
           MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget_c::real(origin, origin_count, origin_type, target,
                                   place(win, target, at), target_count, target_type, win, request);
}

int raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                  MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                  MPI_Win win, MPI_Request* request) {
  return WindowCalls::Raccumulate_c::real(origin, origin_count, origin_type, target,
                                          place(win, target, at), target_count, target_type, op,
                                          win, request);
}

int rget_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                      void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                      MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                      MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget_accumulate_c::real(
      origin, origin_count, origin_type, result, result_count, result_type, target,
      place(win, target, at), target_count, target_type, op, win, request);
}

#endif

}  // namespace perdure
