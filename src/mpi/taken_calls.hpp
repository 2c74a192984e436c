// SPDX-License-Identifier: BSD-3-Clause
//
// The names that Perdure takes: PERDURE_…_CALLS(F) calls F(X) for each; X completes MPI_X.
//
// This is the one table: the jumps, the variables, what finds the MPI library's functions, and the
// types, declarations and directions of calls are made from it.
#pragma once

// clang-format off
// MPI begins with one of these: there we see whether the process has an MPI that we serve.
#define PERDURE_INIT_CALLS(F) F(Init) F(Init_thread) F(Session_init)

// After these somebody may still read or store what they were given: F(X, first buffer, second
// buffer, count, type), places of arguments; -1: there is none. Each has a large-count form.
#define PERDURE_LENDING_CALLS(F) \
  F(Isend, 0, -1, 1, 2) F(Ibsend, 0, -1, 1, 2) F(Issend, 0, -1, 1, 2) F(Irsend, 0, -1, 1, 2) \
  F(Irecv, 0, -1, 1, 2) F(Imrecv, 0, -1, 1, 2) F(Send_init, 0, -1, 1, 2) \
  F(Bsend_init, 0, -1, 1, 2) F(Ssend_init, 0, -1, 1, 2) F(Rsend_init, 0, -1, 1, 2) \
  F(Recv_init, 0, -1, 1, 2) F(Ibcast, 0, -1, 1, 2) F(Ireduce, 0, 1, 2, 3) \
  F(Iallreduce, 0, 1, 2, 3) F(Iscan, 0, 1, 2, 3) F(Iexscan, 0, 1, 2, 3)
// Those of which all memory counts as lent.
#define PERDURE_LENDING_ALL_CALLS(F) \
  F(Igather) F(Igatherv) F(Iscatter) F(Iscatterv) F(Iallgather) F(Iallgatherv) F(Ialltoall) \
  F(Ialltoallv) F(Ialltoallw) F(Ireduce_scatter) F(Ireduce_scatter_block) \
  F(Ineighbor_allgather) F(Ineighbor_allgatherv) F(Ineighbor_alltoall) F(Ineighbor_alltoallv) \
  F(Ineighbor_alltoallw) F(Buffer_attach)
// Since MPI 4.0.
#define PERDURE_NEWER_LENDING_ALL_CALLS(F) \
  F(Isendrecv) F(Isendrecv_replace) F(Bcast_init) F(Reduce_init) F(Allreduce_init) \
  F(Scan_init) F(Exscan_init) F(Gather_init) F(Gatherv_init) F(Scatter_init) F(Scatterv_init) \
  F(Allgather_init) F(Allgatherv_init) F(Alltoall_init) F(Alltoallv_init) F(Alltoallw_init) \
  F(Reduce_scatter_init) F(Reduce_scatter_block_init) F(Neighbor_allgather_init) \
  F(Neighbor_allgatherv_init) F(Neighbor_alltoall_init) F(Neighbor_alltoallv_init) \
  F(Neighbor_alltoallw_init)
// Which have no large-count form.
#define PERDURE_PARTITIONED_CALLS(F) F(Psend_init) F(Precv_init)

// F(X, Perdure's function). Those that make windows, and the others.
#define PERDURE_CREATION_CALLS(F) \
  F(Win_create, win_create) F(Win_allocate, win_allocate) \
  F(Win_allocate_shared, win_allocate_shared) F(Win_create_dynamic, win_create_dynamic)
#define PERDURE_FENCE_CALL(F) F(Win_fence, win_fence)
#define PERDURE_OPEN_WINDOW_CALLS(F) \
  F(Win_shared_query, win_shared_query) F(Win_attach, win_attach) F(Win_detach, win_detach) \
  F(Win_free, win_free) F(Win_get_attr, win_get_attr) F(Win_get_info, win_get_info) \
  F(Win_set_info, win_set_info) F(Win_start, win_start) F(Win_post, win_post) \
  F(Win_complete, win_complete) F(Win_wait, win_wait) \
  F(Win_test, win_test) F(Win_lock, win_lock) F(Win_lock_all, win_lock_all) \
  F(Win_unlock, win_unlock) F(Win_unlock_all, win_unlock_all) F(Win_flush_all, win_flush_all) \
  F(Put, put) F(Get, get) F(Accumulate, accumulate) \
  F(Get_accumulate, get_accumulate) F(Fetch_and_op, fetch_and_op) \
  F(Compare_and_swap, compare_and_swap) F(Rput, rput) F(Rget, rget) \
  F(Raccumulate, raccumulate) F(Rget_accumulate, rget_accumulate)
#define PERDURE_TAKEN_WINDOW_CALLS(F) \
  PERDURE_CREATION_CALLS(F) PERDURE_FENCE_CALL(F) PERDURE_OPEN_WINDOW_CALLS(F)
// Perdure makes MPI_Win_sync itself, and leaves the program's to the MPI library.
#define PERDURE_WINDOW_CALLS(F) PERDURE_TAKEN_WINDOW_CALLS(F) F(Win_sync)
// The large-count forms of MPI 4.0: F(X_c, Perdure's function, X, those of its arguments that are
// int in X).
#define PERDURE_WIDE_CREATION_CALLS(F) \
  F(Win_create_c, win_create_c, Win_create, counts({2})) \
  F(Win_allocate_c, win_allocate_c, Win_allocate, counts({1})) \
  F(Win_allocate_shared_c, win_allocate_shared_c, Win_allocate_shared, counts({1}))
#define PERDURE_WIDE_OPEN_WINDOW_CALLS(F) \
  F(Win_shared_query_c, win_shared_query_c, Win_shared_query, counts({}, 3)) \
  F(Put_c, put_c, Put, counts({1, 5})) F(Get_c, get_c, Get, counts({1, 5})) \
  F(Accumulate_c, accumulate_c, Accumulate, counts({1, 5})) \
  F(Get_accumulate_c, get_accumulate_c, Get_accumulate, counts({1, 4, 8})) \
  F(Rput_c, rput_c, Rput, counts({1, 5})) F(Rget_c, rget_c, Rget, counts({1, 5})) \
  F(Raccumulate_c, raccumulate_c, Raccumulate, counts({1, 5})) \
  F(Rget_accumulate_c, rget_accumulate_c, Rget_accumulate, counts({1, 4, 8}))
#define PERDURE_WIDE_WINDOW_CALLS(F) \
  PERDURE_WIDE_CREATION_CALLS(F) PERDURE_WIDE_OPEN_WINDOW_CALLS(F)

// Calls on files; here X completes MPI_File_X. Those of each shape that transfer bytes:
//   AT       file, offset, buffer, count, type, status
//   HERE     file, buffer, count, type, status
//   IAT      file, offset, buffer, count, type, request
//   IHERE    file, buffer, count, type, request
//   AT_BEGIN, HERE_BEGIN, END: split collectives
#define PERDURE_CALLS_AT(F) F(read_at) F(read_at_all) F(write_at) F(write_at_all)
#define PERDURE_CALLS_HERE(F) \
  F(read) F(read_all) F(write) F(write_all) F(read_shared) F(write_shared) F(read_ordered) \
  F(write_ordered)
#define PERDURE_CALLS_IAT(F) F(iread_at) F(iread_at_all) F(iwrite_at) F(iwrite_at_all)
#define PERDURE_CALLS_IHERE(F) \
  F(iread) F(iread_all) F(iwrite) F(iwrite_all) F(iread_shared) F(iwrite_shared)
#define PERDURE_CALLS_AT_BEGIN(F) F(read_at_all_begin) F(write_at_all_begin)
#define PERDURE_CALLS_HERE_BEGIN(F) \
  F(read_all_begin) F(write_all_begin) F(read_ordered_begin) F(write_ordered_begin)
#define PERDURE_CALLS_END(F) \
  F(read_at_all_end) F(write_at_all_end) F(read_all_end) F(write_all_end) \
  F(read_ordered_end) F(write_ordered_end)
// Those that have a count, as argument 3 or 2, and so a large-count form X_c.
#define PERDURE_CALLS_COUNT_3(F) \
  PERDURE_CALLS_AT(F) PERDURE_CALLS_IAT(F) PERDURE_CALLS_AT_BEGIN(F)
#define PERDURE_CALLS_COUNT_2(F) \
  PERDURE_CALLS_HERE(F) PERDURE_CALLS_IHERE(F) PERDURE_CALLS_HERE_BEGIN(F)
#define PERDURE_CALLS_COUNTED(F) PERDURE_CALLS_COUNT_3(F) PERDURE_CALLS_COUNT_2(F)
// Those that don't transfer bytes, except MPI_File_delete, whose name is a word of C++; Perdure's
// function is file_X.
#define PERDURE_CALLS_OTHER(F) F(open) PERDURE_CALLS_OPEN_FILE(F)
#define PERDURE_CALLS_OPEN_FILE(F) \
  F(close) F(set_size) F(preallocate) F(get_size) F(set_info) F(get_info) \
  F(set_view) F(seek) F(get_position) F(seek_shared) F(get_position_shared) F(set_atomicity) \
  F(get_atomicity) F(sync)
#define PERDURE_FILE_CALLS(F) \
  PERDURE_CALLS_COUNTED(F) PERDURE_CALLS_END(F) PERDURE_CALLS_OTHER(F) F(delete)

// Taken for files, as some MPI libraries have no text for the codes of their errors.
#define PERDURE_TEXT_CALLS(F) F(Error_string)
// clang-format on
