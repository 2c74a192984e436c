// The names of MPI that this library defines. Each is a jump to where mpi_calls.hpp directs it.
//
// Both MPI_X and PMPI_X are taken, as Fortran bindings call either. A call that makes a window also
// says who made it: MPI libraries make windows for themselves (MPI-IO), which stay theirs.
#include <mpi.h>

#include "perdure/perdure.h"
#include "rma/mpi_calls.hpp"
#include "rma/window_calls.hpp"

#define EXPORTED PERDURE_API

using namespace perdure;  // NOLINT(google-build-using-namespace): MPI's names stand below

extern "C" {

EXPORTED int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                            MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinCreate::entry.load(std::memory_order_relaxed)(base, size, disp_unit, info, comm, win);
}
EXPORTED decltype(MPI_Win_create) PMPI_Win_create __attribute__((alias("MPI_Win_create")));

EXPORTED int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                              void* base, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinAllocate::entry.load(std::memory_order_relaxed)(size, disp_unit, info, comm, base, win);
}
EXPORTED decltype(MPI_Win_allocate) PMPI_Win_allocate __attribute__((alias("MPI_Win_allocate")));

EXPORTED int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                     void* base, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinAllocateShared::entry.load(std::memory_order_relaxed)(size, disp_unit, info, comm, base,
                                                                  win);
}
EXPORTED decltype(MPI_Win_allocate_shared) PMPI_Win_allocate_shared
    __attribute__((alias("MPI_Win_allocate_shared")));

EXPORTED int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinCreateDynamic::entry.load(std::memory_order_relaxed)(info, comm, win);
}
EXPORTED decltype(MPI_Win_create_dynamic) PMPI_Win_create_dynamic
    __attribute__((alias("MPI_Win_create_dynamic")));

EXPORTED int MPI_Win_free(MPI_Win* win) {
  return WinFree::entry.load(std::memory_order_relaxed)(win);
}
EXPORTED decltype(MPI_Win_free) PMPI_Win_free __attribute__((alias("MPI_Win_free")));

EXPORTED int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  return WinAttach::entry.load(std::memory_order_relaxed)(win, base, size);
}
EXPORTED decltype(MPI_Win_attach) PMPI_Win_attach __attribute__((alias("MPI_Win_attach")));

EXPORTED int MPI_Win_detach(MPI_Win win, const void* base) {
  return WinDetach::entry.load(std::memory_order_relaxed)(win, base);
}
EXPORTED decltype(MPI_Win_detach) PMPI_Win_detach __attribute__((alias("MPI_Win_detach")));

EXPORTED int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit,
                                  void* base) {
  return WinSharedQuery::entry.load(std::memory_order_relaxed)(win, rank, size, disp_unit, base);
}
EXPORTED decltype(MPI_Win_shared_query) PMPI_Win_shared_query
    __attribute__((alias("MPI_Win_shared_query")));

EXPORTED int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  return WinGetAttr::entry.load(std::memory_order_relaxed)(win, keyval, value, flag);
}
EXPORTED decltype(MPI_Win_get_attr) PMPI_Win_get_attr __attribute__((alias("MPI_Win_get_attr")));

EXPORTED int MPI_Win_get_info(MPI_Win win, MPI_Info* info) {
  return WinGetInfo::entry.load(std::memory_order_relaxed)(win, info);
}
EXPORTED decltype(MPI_Win_get_info) PMPI_Win_get_info __attribute__((alias("MPI_Win_get_info")));

EXPORTED int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
  return WinSetInfo::entry.load(std::memory_order_relaxed)(win, info);
}
EXPORTED decltype(MPI_Win_set_info) PMPI_Win_set_info __attribute__((alias("MPI_Win_set_info")));

EXPORTED int MPI_Win_fence(int assertion, MPI_Win win) {
  return WinFence::entry.load(std::memory_order_relaxed)(assertion, win);
}
EXPORTED decltype(MPI_Win_fence) PMPI_Win_fence __attribute__((alias("MPI_Win_fence")));

EXPORTED int MPI_Win_complete(MPI_Win win) {
  return WinComplete::entry.load(std::memory_order_relaxed)(win);
}
EXPORTED decltype(MPI_Win_complete) PMPI_Win_complete __attribute__((alias("MPI_Win_complete")));

EXPORTED int MPI_Win_wait(MPI_Win win) {
  return WinWait::entry.load(std::memory_order_relaxed)(win);
}
EXPORTED decltype(MPI_Win_wait) PMPI_Win_wait __attribute__((alias("MPI_Win_wait")));

EXPORTED int MPI_Win_test(MPI_Win win, int* flag) {
  return WinTest::entry.load(std::memory_order_relaxed)(win, flag);
}
EXPORTED decltype(MPI_Win_test) PMPI_Win_test __attribute__((alias("MPI_Win_test")));

EXPORTED int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
  return WinLock::entry.load(std::memory_order_relaxed)(type, rank, assertion, win);
}
EXPORTED decltype(MPI_Win_lock) PMPI_Win_lock __attribute__((alias("MPI_Win_lock")));

EXPORTED int MPI_Win_lock_all(int assertion, MPI_Win win) {
  return WinLockAll::entry.load(std::memory_order_relaxed)(assertion, win);
}
EXPORTED decltype(MPI_Win_lock_all) PMPI_Win_lock_all __attribute__((alias("MPI_Win_lock_all")));

EXPORTED int MPI_Win_unlock(int rank, MPI_Win win) {
  return WinUnlock::entry.load(std::memory_order_relaxed)(rank, win);
}
EXPORTED decltype(MPI_Win_unlock) PMPI_Win_unlock __attribute__((alias("MPI_Win_unlock")));

EXPORTED int MPI_Win_unlock_all(MPI_Win win) {
  return WinUnlockAll::entry.load(std::memory_order_relaxed)(win);
}
EXPORTED decltype(MPI_Win_unlock_all) PMPI_Win_unlock_all
    __attribute__((alias("MPI_Win_unlock_all")));

EXPORTED int MPI_Win_flush_all(MPI_Win win) {
  return WinFlushAll::entry.load(std::memory_order_relaxed)(win);
}
EXPORTED decltype(MPI_Win_flush_all) PMPI_Win_flush_all __attribute__((alias("MPI_Win_flush_all")));

EXPORTED int MPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
                     MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Win win) {
  return Put::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                    target_count, target_type, win);
}
EXPORTED decltype(MPI_Put) PMPI_Put __attribute__((alias("MPI_Put")));

EXPORTED int MPI_Get(void* origin, int origin_count, MPI_Datatype origin_type, int target,
                     MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Win win) {
  return Get::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                    target_count, target_type, win);
}
EXPORTED decltype(MPI_Get) PMPI_Get __attribute__((alias("MPI_Get")));

EXPORTED int MPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                            int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
                            MPI_Op op, MPI_Win win) {
  return Accumulate::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, target, at, target_count, target_type, op, win);
}
EXPORTED decltype(MPI_Accumulate) PMPI_Accumulate __attribute__((alias("MPI_Accumulate")));

EXPORTED int MPI_Get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                                void* result, int result_count, MPI_Datatype result_type,
                                int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
                                MPI_Op op, MPI_Win win) {
  return GetAccumulate::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win);
}
EXPORTED decltype(MPI_Get_accumulate) PMPI_Get_accumulate
    __attribute__((alias("MPI_Get_accumulate")));

EXPORTED int MPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target,
                              MPI_Aint at, MPI_Op op, MPI_Win win) {
  return FetchAndOp::entry.load(std::memory_order_relaxed)(origin, result, type, target, at, op,
                                                           win);
}
EXPORTED decltype(MPI_Fetch_and_op) PMPI_Fetch_and_op __attribute__((alias("MPI_Fetch_and_op")));

EXPORTED int MPI_Compare_and_swap(const void* origin, const void* compare, void* result,
                                  MPI_Datatype type, int target, MPI_Aint at, MPI_Win win) {
  return CompareAndSwap::entry.load(std::memory_order_relaxed)(origin, compare, result, type,
                                                               target, at, win);
}
EXPORTED decltype(MPI_Compare_and_swap) PMPI_Compare_and_swap
    __attribute__((alias("MPI_Compare_and_swap")));

EXPORTED int MPI_Rput(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
                      MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Win win,
                      MPI_Request* request) {
  return Rput::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win, request);
}
EXPORTED decltype(MPI_Rput) PMPI_Rput __attribute__((alias("MPI_Rput")));

EXPORTED int MPI_Rget(void* origin, int origin_count, MPI_Datatype origin_type, int target,
                      MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Win win,
                      MPI_Request* request) {
  return Rget::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win, request);
}
EXPORTED decltype(MPI_Rget) PMPI_Rget __attribute__((alias("MPI_Rget")));

EXPORTED int MPI_Raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                             int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
                             MPI_Op op, MPI_Win win, MPI_Request* request) {
  return Raccumulate::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, target, at, target_count, target_type, op, win, request);
}
EXPORTED decltype(MPI_Raccumulate) PMPI_Raccumulate __attribute__((alias("MPI_Raccumulate")));

EXPORTED int MPI_Rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                                 void* result, int result_count, MPI_Datatype result_type,
                                 int target, MPI_Aint at, int target_count,
                                 MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                                 MPI_Request* request) {
  return RgetAccumulate::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win, request);
}
EXPORTED decltype(MPI_Rget_accumulate) PMPI_Rget_accumulate
    __attribute__((alias("MPI_Rget_accumulate")));

#if MPI_VERSION >= 4
EXPORTED int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                              MPI_Comm comm, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinCreateC::entry.load(std::memory_order_relaxed)(base, size, disp_unit, info, comm, win);
}
EXPORTED decltype(MPI_Win_create_c) PMPI_Win_create_c __attribute__((alias("MPI_Win_create_c")));

EXPORTED int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                                void* base, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinAllocateC::entry.load(std::memory_order_relaxed)(size, disp_unit, info, comm, base,
                                                             win);
}
EXPORTED decltype(MPI_Win_allocate_c) PMPI_Win_allocate_c
    __attribute__((alias("MPI_Win_allocate_c")));

EXPORTED int MPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                       MPI_Comm comm, void* base, MPI_Win* win) {
  const CallerScope caller(__builtin_return_address(0));
  return WinAllocateSharedC::entry.load(std::memory_order_relaxed)(size, disp_unit, info, comm,
                                                                   base, win);
}
EXPORTED decltype(MPI_Win_allocate_shared_c) PMPI_Win_allocate_shared_c
    __attribute__((alias("MPI_Win_allocate_shared_c")));

EXPORTED int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit,
                                    void* base) {
  return WinSharedQueryC::entry.load(std::memory_order_relaxed)(win, rank, size, disp_unit, base);
}
EXPORTED decltype(MPI_Win_shared_query_c) PMPI_Win_shared_query_c
    __attribute__((alias("MPI_Win_shared_query_c")));

EXPORTED int MPI_Put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                       int target, MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type,
                       MPI_Win win) {
  return PutC::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win);
}
EXPORTED decltype(MPI_Put_c) PMPI_Put_c __attribute__((alias("MPI_Put_c")));

EXPORTED int MPI_Get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                       MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return GetC::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                     target_count, target_type, win);
}
EXPORTED decltype(MPI_Get_c) PMPI_Get_c __attribute__((alias("MPI_Get_c")));

EXPORTED int MPI_Accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                              int target, MPI_Aint at, MPI_Count target_count,
                              MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return AccumulateC::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, target, at, target_count, target_type, op, win);
}
EXPORTED decltype(MPI_Accumulate_c) PMPI_Accumulate_c __attribute__((alias("MPI_Accumulate_c")));

EXPORTED int MPI_Get_accumulate_c(const void* origin, MPI_Count origin_count,
                                  MPI_Datatype origin_type, void* result, MPI_Count result_count,
                                  MPI_Datatype result_type, int target, MPI_Aint at,
                                  MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                  MPI_Win win) {
  return GetAccumulateC::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win);
}
EXPORTED decltype(MPI_Get_accumulate_c) PMPI_Get_accumulate_c
    __attribute__((alias("MPI_Get_accumulate_c")));

EXPORTED int MPI_Rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                        int target, MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type,
                        MPI_Win win, MPI_Request* request) {
  return RputC::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                      target_count, target_type, win, request);
}
EXPORTED decltype(MPI_Rput_c) PMPI_Rput_c __attribute__((alias("MPI_Rput_c")));

EXPORTED int MPI_Rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                        MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win,
                        MPI_Request* request) {
  return RgetC::entry.load(std::memory_order_relaxed)(origin, origin_count, origin_type, target, at,
                                                      target_count, target_type, win, request);
}
EXPORTED decltype(MPI_Rget_c) PMPI_Rget_c __attribute__((alias("MPI_Rget_c")));

EXPORTED int MPI_Raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                               int target, MPI_Aint at, MPI_Count target_count,
                               MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                               MPI_Request* request) {
  return RaccumulateC::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, target, at, target_count, target_type, op, win, request);
}
EXPORTED decltype(MPI_Raccumulate_c) PMPI_Raccumulate_c __attribute__((alias("MPI_Raccumulate_c")));

EXPORTED int MPI_Rget_accumulate_c(const void* origin, MPI_Count origin_count,
                                   MPI_Datatype origin_type, void* result, MPI_Count result_count,
                                   MPI_Datatype result_type, int target, MPI_Aint at,
                                   MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                   MPI_Win win, MPI_Request* request) {
  return RgetAccumulateC::entry.load(std::memory_order_relaxed)(
      origin, origin_count, origin_type, result, result_count, result_type, target, at,
      target_count, target_type, op, win, request);
}
EXPORTED decltype(MPI_Rget_accumulate_c) PMPI_Rget_accumulate_c
    __attribute__((alias("MPI_Rget_accumulate_c")));

#endif

}  // extern "C"
