// SPDX-License-Identifier: BSD-3-Clause
//
// Lending: calls of MPI after which somebody may still read or store the memory that they were
// given say so (base/guests.hpp), and go on to where their name leads.
//
// PERDURE_EXPORT_LENDING exports such a name (exported_calls.hpp); PERDURE_LEND_JUMP once in each
// .cpp file that does. Memory of a type that is not one of MPI's own is not looked for: then all
// memory counts as lent. The MPI library's own calls of that kind lend nothing.
//
// Threads: any.
#pragma once

#include <atomic>

#include "mpi/exported_calls.hpp"
#include "mpi/taken_call.hpp"

namespace perdure {

// Places of arguments, below 6; -1: none. Without a buffer: all memory.
struct LendingCall {
  void (*bind)();     // finds where the calls of its kind lead
  const char* name;   // MPI_X
  bool wide = false;  // its count has 64 bits
  int first = -1;
  int second = -1;
  int count = -1;
  int type = -1;
};

}  // namespace perdure

// Where the call goes on to. `registers`: as PERDURE_LEND_JUMP has saved them.
extern "C" [[gnu::visibility("hidden")]] void* perdure_lend(const perdure::LendingCall* call,
                                                            const unsigned long* registers,
                                                            const std::atomic<void*>* to);

// MPI_X and PMPI_X; then `bind`, whether its count is wide, and the places.
#define PERDURE_EXPORT_LENDING(x, bind, ...)                                                       \
  extern "C"                                                                                       \
      [[gnu::used, gnu::visibility("hidden")]] constexpr perdure::LendingCall perdure_lending_##x{ \
          bind, "MPI_" #x, __VA_ARGS__};                                                           \
  PERDURE_EXPORT_LENDING_JUMP("MPI_" #x, "perdure_lending_" #x, "perdure_taken_" #x)               \
  PERDURE_EXPORT_LENDING_JUMP("PMPI_" #x, "perdure_lending_" #x, "perdure_taken_" #x "+8")
