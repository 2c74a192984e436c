#include "rma/mpi_calls.hpp"

#include <mutex>

#include "rma/window_calls.hpp"

namespace perdure {
namespace {

void bind_all() {
  bind_calls<WinCreate, WinAllocate, WinAllocateShared, WinCreateDynamic, WinSharedQuery, WinAttach,
             WinDetach, WinFree, WinGetAttr, WinGetInfo, WinSetInfo>();
  bind_calls<WinFence, WinComplete, WinWait, WinTest, WinLock, WinLockAll, WinUnlock, WinUnlockAll,
             WinFlushAll, WinSync>();
  bind_calls<Put, Get, Accumulate, GetAccumulate, FetchAndOp, CompareAndSwap, Rput, Rget,
             Raccumulate, RgetAccumulate>();
#if MPI_VERSION >= 4
  bind_calls<WinCreateC, WinAllocateC, WinAllocateSharedC, WinSharedQueryC, PutC, GetC, AccumulateC,
             GetAccumulateC, RputC, RgetC, RaccumulateC, RgetAccumulateC>();
#endif
}

// Those that must be looked at even while no window is persistent.
void take_creation_and_fence() {
  direct<WinCreate>(true, win_create);
  direct<WinAllocate>(true, win_allocate);
  direct<WinAllocateShared>(true, win_allocate_shared);
  direct<WinCreateDynamic>(true, win_create_dynamic);
  direct<WinFence>(true, win_fence);
#if MPI_VERSION >= 4
  direct<WinCreateC>(true, win_create_c);
  direct<WinAllocateC>(true, win_allocate_c);
  direct<WinAllocateSharedC>(true, win_allocate_shared_c);
#endif
}

void take_operations(bool take) {
  direct<Put>(take, put);
  direct<Get>(take, get);
  direct<Accumulate>(take, accumulate);
  direct<GetAccumulate>(take, get_accumulate);
  direct<FetchAndOp>(take, fetch_and_op);
  direct<CompareAndSwap>(take, compare_and_swap);
  direct<Rput>(take, rput);
  direct<Rget>(take, rget);
  direct<Raccumulate>(take, raccumulate);
  direct<RgetAccumulate>(take, rget_accumulate);
#if MPI_VERSION >= 4
  direct<PutC>(take, put_c);
  direct<GetC>(take, get_c);
  direct<AccumulateC>(take, accumulate_c);
  direct<GetAccumulateC>(take, get_accumulate_c);
  direct<RputC>(take, rput_c);
  direct<RgetC>(take, rget_c);
  direct<RaccumulateC>(take, raccumulate_c);
  direct<RgetAccumulateC>(take, rget_accumulate_c);
#endif
}

}  // namespace

void bind_window_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    bind_all();
    take_creation_and_fence();
  });
}

void take_window_calls(bool take) {
  take_operations(take);
  direct<WinAttach>(take, win_attach);
  direct<WinDetach>(take, win_detach);
  direct<WinFree>(take, win_free);
  direct<WinSharedQuery>(take, win_shared_query);
  direct<WinGetAttr>(take, win_get_attr);
  direct<WinGetInfo>(take, win_get_info);
  direct<WinSetInfo>(take, win_set_info);
  direct<WinComplete>(take, win_complete);
  direct<WinWait>(take, win_wait);
  direct<WinTest>(take, win_test);
  direct<WinLock>(take, win_lock);
  direct<WinLockAll>(take, win_lock_all);
  direct<WinUnlock>(take, win_unlock);
  direct<WinUnlockAll>(take, win_unlock_all);
  direct<WinFlushAll>(take, win_flush_all);
#if MPI_VERSION >= 4
  direct<WinSharedQueryC>(take, win_shared_query_c);
#endif
}

}  // namespace perdure
