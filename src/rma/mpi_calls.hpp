// The calls of MPI that Perdure takes: for each, the MPI library's own function, and the function
// that the exported name jumps to.
//
// The exported MPI_X is one indirect jump (exports.cpp), as through a linker's table. It leads
//   to first_call      until the first MPI call of any kind here, which finds the MPI library;
//   to the library     while no window is persistent, so that nothing is added to a call;
//   to Perdure's own   (window_calls.hpp) from the first persistent window on.
// Calls that make windows, and MPI_Win_fence, which can ask for a commit, always come here.
//
// Threads: any. A thread that still jumps to the library when another makes the first persistent
// window can't have that window's handle yet.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "mpi/mpi_library.hpp"

namespace perdure {

template <std::size_t length>
struct CallName {
  char text[length];
  consteval CallName(const char (&from)[length]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(from, length, text);
  }
};

// Finds the MPI library's functions and directs every call. Idempotent.
void bind_mpi_calls();

template <CallName name, typename Function>
struct Call;

template <CallName name, typename... Arguments>
struct Call<name, int(Arguments...)> {
  using Function = int(Arguments...);

  // The first call in the process, whichever it is.
  static int first_call(Arguments... arguments) {
    bind_mpi_calls();
    return entry.load(std::memory_order_relaxed)(arguments...);
  }

  // Finds the library's function. An MPI library that lacks it is told so if it's ever called.
  static void bind() {
    void* found = mpi_symbol(name.text);
    real = found == nullptr ? &absent : reinterpret_cast<Function*>(found);
    entry.store(real, std::memory_order_relaxed);
  }
  static int absent(Arguments...) { return MPI_ERR_UNSUPPORTED_OPERATION; }

  static inline Function* real = nullptr;
  static inline std::atomic<Function*> entry = &first_call;
};

using WinCreate = Call<"PMPI_Win_create", decltype(MPI_Win_create)>;
using WinAllocate = Call<"PMPI_Win_allocate", decltype(MPI_Win_allocate)>;
using WinAllocateShared = Call<"PMPI_Win_allocate_shared", decltype(MPI_Win_allocate_shared)>;
using WinCreateDynamic = Call<"PMPI_Win_create_dynamic", decltype(MPI_Win_create_dynamic)>;
using WinSharedQuery = Call<"PMPI_Win_shared_query", decltype(MPI_Win_shared_query)>;
using WinAttach = Call<"PMPI_Win_attach", decltype(MPI_Win_attach)>;
using WinDetach = Call<"PMPI_Win_detach", decltype(MPI_Win_detach)>;
using WinFree = Call<"PMPI_Win_free", decltype(MPI_Win_free)>;
using WinGetAttr = Call<"PMPI_Win_get_attr", decltype(MPI_Win_get_attr)>;
using WinGetInfo = Call<"PMPI_Win_get_info", decltype(MPI_Win_get_info)>;
using WinSetInfo = Call<"PMPI_Win_set_info", decltype(MPI_Win_set_info)>;

using WinFence = Call<"PMPI_Win_fence", decltype(MPI_Win_fence)>;
using WinComplete = Call<"PMPI_Win_complete", decltype(MPI_Win_complete)>;
using WinWait = Call<"PMPI_Win_wait", decltype(MPI_Win_wait)>;
using WinTest = Call<"PMPI_Win_test", decltype(MPI_Win_test)>;
using WinLock = Call<"PMPI_Win_lock", decltype(MPI_Win_lock)>;
using WinLockAll = Call<"PMPI_Win_lock_all", decltype(MPI_Win_lock_all)>;
using WinUnlock = Call<"PMPI_Win_unlock", decltype(MPI_Win_unlock)>;
using WinUnlockAll = Call<"PMPI_Win_unlock_all", decltype(MPI_Win_unlock_all)>;
using WinFlushAll = Call<"PMPI_Win_flush_all", decltype(MPI_Win_flush_all)>;
using WinSync = Call<"PMPI_Win_sync", decltype(MPI_Win_sync)>;

using Put = Call<"PMPI_Put", decltype(MPI_Put)>;
using Get = Call<"PMPI_Get", decltype(MPI_Get)>;
using Accumulate = Call<"PMPI_Accumulate", decltype(MPI_Accumulate)>;
using GetAccumulate = Call<"PMPI_Get_accumulate", decltype(MPI_Get_accumulate)>;
using FetchAndOp = Call<"PMPI_Fetch_and_op", decltype(MPI_Fetch_and_op)>;
using CompareAndSwap = Call<"PMPI_Compare_and_swap", decltype(MPI_Compare_and_swap)>;
using Rput = Call<"PMPI_Rput", decltype(MPI_Rput)>;
using Rget = Call<"PMPI_Rget", decltype(MPI_Rget)>;
using Raccumulate = Call<"PMPI_Raccumulate", decltype(MPI_Raccumulate)>;
using RgetAccumulate = Call<"PMPI_Rget_accumulate", decltype(MPI_Rget_accumulate)>;

// The large-count forms of MPI 4.0, where the MPI has them.
#if MPI_VERSION >= 4
using WinCreateC = Call<"PMPI_Win_create_c", decltype(MPI_Win_create_c)>;
using WinAllocateC = Call<"PMPI_Win_allocate_c", decltype(MPI_Win_allocate_c)>;
using WinAllocateSharedC = Call<"PMPI_Win_allocate_shared_c", decltype(MPI_Win_allocate_shared_c)>;
using WinSharedQueryC = Call<"PMPI_Win_shared_query_c", decltype(MPI_Win_shared_query_c)>;
using PutC = Call<"PMPI_Put_c", decltype(MPI_Put_c)>;
using GetC = Call<"PMPI_Get_c", decltype(MPI_Get_c)>;
using AccumulateC = Call<"PMPI_Accumulate_c", decltype(MPI_Accumulate_c)>;
using GetAccumulateC = Call<"PMPI_Get_accumulate_c", decltype(MPI_Get_accumulate_c)>;
using RputC = Call<"PMPI_Rput_c", decltype(MPI_Rput_c)>;
using RgetC = Call<"PMPI_Rget_c", decltype(MPI_Rget_c)>;
using RaccumulateC = Call<"PMPI_Raccumulate_c", decltype(MPI_Raccumulate_c)>;
using RgetAccumulateC = Call<"PMPI_Rget_accumulate_c", decltype(MPI_Rget_accumulate_c)>;
#endif

}  // namespace perdure
