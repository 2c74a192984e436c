// The calls of MPI on windows that Perdure takes (mpi/mpi_call.hpp).
//
// Calls that make windows, and MPI_Win_fence, which can ask for a commit, always come here; the
// others from the first persistent window on.
#pragma once

#include <mpi.h>

#include "mpi/mpi_call.hpp"

namespace perdure {

// Finds the MPI library's functions on windows and directs them. Idempotent.
void bind_window_calls();

template <CallName name, typename Function>
using WindowCall = Call<name, Function, bind_window_calls>;

using WinCreate = WindowCall<"PMPI_Win_create", decltype(MPI_Win_create)>;
using WinAllocate = WindowCall<"PMPI_Win_allocate", decltype(MPI_Win_allocate)>;
using WinAllocateShared = WindowCall<"PMPI_Win_allocate_shared", decltype(MPI_Win_allocate_shared)>;
using WinCreateDynamic = WindowCall<"PMPI_Win_create_dynamic", decltype(MPI_Win_create_dynamic)>;
using WinSharedQuery = WindowCall<"PMPI_Win_shared_query", decltype(MPI_Win_shared_query)>;
using WinAttach = WindowCall<"PMPI_Win_attach", decltype(MPI_Win_attach)>;
using WinDetach = WindowCall<"PMPI_Win_detach", decltype(MPI_Win_detach)>;
using WinFree = WindowCall<"PMPI_Win_free", decltype(MPI_Win_free)>;
using WinGetAttr = WindowCall<"PMPI_Win_get_attr", decltype(MPI_Win_get_attr)>;
using WinGetInfo = WindowCall<"PMPI_Win_get_info", decltype(MPI_Win_get_info)>;
using WinSetInfo = WindowCall<"PMPI_Win_set_info", decltype(MPI_Win_set_info)>;

using WinFence = WindowCall<"PMPI_Win_fence", decltype(MPI_Win_fence)>;
using WinComplete = WindowCall<"PMPI_Win_complete", decltype(MPI_Win_complete)>;
using WinWait = WindowCall<"PMPI_Win_wait", decltype(MPI_Win_wait)>;
using WinTest = WindowCall<"PMPI_Win_test", decltype(MPI_Win_test)>;
using WinLock = WindowCall<"PMPI_Win_lock", decltype(MPI_Win_lock)>;
using WinLockAll = WindowCall<"PMPI_Win_lock_all", decltype(MPI_Win_lock_all)>;
using WinUnlock = WindowCall<"PMPI_Win_unlock", decltype(MPI_Win_unlock)>;
using WinUnlockAll = WindowCall<"PMPI_Win_unlock_all", decltype(MPI_Win_unlock_all)>;
using WinFlushAll = WindowCall<"PMPI_Win_flush_all", decltype(MPI_Win_flush_all)>;
using WinSync = WindowCall<"PMPI_Win_sync", decltype(MPI_Win_sync)>;

using Put = WindowCall<"PMPI_Put", decltype(MPI_Put)>;
using Get = WindowCall<"PMPI_Get", decltype(MPI_Get)>;
using Accumulate = WindowCall<"PMPI_Accumulate", decltype(MPI_Accumulate)>;
using GetAccumulate = WindowCall<"PMPI_Get_accumulate", decltype(MPI_Get_accumulate)>;
using FetchAndOp = WindowCall<"PMPI_Fetch_and_op", decltype(MPI_Fetch_and_op)>;
using CompareAndSwap = WindowCall<"PMPI_Compare_and_swap", decltype(MPI_Compare_and_swap)>;
using Rput = WindowCall<"PMPI_Rput", decltype(MPI_Rput)>;
using Rget = WindowCall<"PMPI_Rget", decltype(MPI_Rget)>;
using Raccumulate = WindowCall<"PMPI_Raccumulate", decltype(MPI_Raccumulate)>;
using RgetAccumulate = WindowCall<"PMPI_Rget_accumulate", decltype(MPI_Rget_accumulate)>;

// The large-count forms of MPI 4.0, where the MPI has them.
#if MPI_VERSION >= 4
using WinCreateC = WindowCall<"PMPI_Win_create_c", decltype(MPI_Win_create_c)>;
using WinAllocateC = WindowCall<"PMPI_Win_allocate_c", decltype(MPI_Win_allocate_c)>;
using WinAllocateSharedC =
    WindowCall<"PMPI_Win_allocate_shared_c", decltype(MPI_Win_allocate_shared_c)>;
using WinSharedQueryC = WindowCall<"PMPI_Win_shared_query_c", decltype(MPI_Win_shared_query_c)>;
using PutC = WindowCall<"PMPI_Put_c", decltype(MPI_Put_c)>;
using GetC = WindowCall<"PMPI_Get_c", decltype(MPI_Get_c)>;
using AccumulateC = WindowCall<"PMPI_Accumulate_c", decltype(MPI_Accumulate_c)>;
using GetAccumulateC = WindowCall<"PMPI_Get_accumulate_c", decltype(MPI_Get_accumulate_c)>;
using RputC = WindowCall<"PMPI_Rput_c", decltype(MPI_Rput_c)>;
using RgetC = WindowCall<"PMPI_Rget_c", decltype(MPI_Rget_c)>;
using RaccumulateC = WindowCall<"PMPI_Raccumulate_c", decltype(MPI_Raccumulate_c)>;
using RgetAccumulateC = WindowCall<"PMPI_Rget_accumulate_c", decltype(MPI_Rget_accumulate_c)>;
#endif

}  // namespace perdure
