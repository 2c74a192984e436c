// Perdure's side of the MPI calls that it takes, by MPI's names and with MPI's arguments. Each
// looks its window up and, if it is not persistent, calls the MPI library.
//
// Errors of Perdure are raised through the error handler of the window, or of the communicator
// while there is no window, with an error code whose text is the sentence of the Status.
//
// Threads: as MPI says of each call.
#pragma once

#include <mpi.h>

#include "base/status.hpp"
#include "mpi/caller_scope.hpp"
#include "rma/mpi_calls.hpp"
#include "rma/window.hpp"

namespace perdure {

// errors.cpp: call the handler, return the code.
int raise_on_comm(MPI_Comm comm, const Status& status);
int raise_on_window(MPI_Win window, const Status& status);

// Directs the calls on windows to here (true), or to the MPI library.
void take_window_calls(bool take);

// creation.cpp
decltype(MPI_Win_create) win_create;
decltype(MPI_Win_allocate) win_allocate;
decltype(MPI_Win_allocate_shared) win_allocate_shared;
decltype(MPI_Win_create_dynamic) win_create_dynamic;
decltype(MPI_Win_attach) win_attach;
decltype(MPI_Win_detach) win_detach;
decltype(MPI_Win_free) win_free;

// queries.cpp
decltype(MPI_Win_shared_query) win_shared_query;
decltype(MPI_Win_get_attr) win_get_attr;
decltype(MPI_Win_get_info) win_get_info;
decltype(MPI_Win_set_info) win_set_info;

// synchronisation.cpp
decltype(MPI_Win_fence) win_fence;
decltype(MPI_Win_complete) win_complete;
decltype(MPI_Win_wait) win_wait;
decltype(MPI_Win_test) win_test;
decltype(MPI_Win_lock) win_lock;
decltype(MPI_Win_lock_all) win_lock_all;
decltype(MPI_Win_unlock) win_unlock;
decltype(MPI_Win_unlock_all) win_unlock_all;
decltype(MPI_Win_flush_all) win_flush_all;

// operations.cpp
decltype(MPI_Put) put;
decltype(MPI_Get) get;
decltype(MPI_Accumulate) accumulate;
decltype(MPI_Get_accumulate) get_accumulate;
decltype(MPI_Fetch_and_op) fetch_and_op;
decltype(MPI_Compare_and_swap) compare_and_swap;
decltype(MPI_Rput) rput;
decltype(MPI_Rget) rget;
decltype(MPI_Raccumulate) raccumulate;
decltype(MPI_Rget_accumulate) rget_accumulate;

#if MPI_VERSION >= 4
decltype(MPI_Win_create_c) win_create_c;
decltype(MPI_Win_allocate_c) win_allocate_c;
decltype(MPI_Win_allocate_shared_c) win_allocate_shared_c;
decltype(MPI_Win_shared_query_c) win_shared_query_c;
decltype(MPI_Put_c) put_c;
decltype(MPI_Get_c) get_c;
decltype(MPI_Accumulate_c) accumulate_c;
decltype(MPI_Get_accumulate_c) get_accumulate_c;
decltype(MPI_Rput_c) rput_c;
decltype(MPI_Rget_c) rget_c;
decltype(MPI_Raccumulate_c) raccumulate_c;
decltype(MPI_Rget_accumulate_c) rget_accumulate_c;
#endif

}  // namespace perdure
