// SPDX-License-Identifier: BSD-3-Clause
//
// A name of MPI that Perdure takes, whatever MPI the process has: where MPI_X and PMPI_X lead.
//
// The exported names (exported_calls.hpp) jump there with the caller's registers and stack as they
// are. So a call that is passed on reaches the MPI library as the program made it, also one of an
// MPI whose handles are of another size than those that this library was compiled for. Until the
// first call of its kind it leads nowhere, as the MPI library may be loaded later than this one.
//
// Nothing here knows mpi.h. Threads: any.
#pragma once

#include <atomic>
#include <cstddef>

namespace perdure {

struct TakenCall {
  std::atomic<void*> to;           // of MPI_X; null: not known yet, or the MPI library has no MPI_X
  std::atomic<void*> to_profiled;  // of PMPI_X
  const char* name;                // X
};
// The jumps are written in assembly.
static_assert(sizeof(std::atomic<void*>) == 8 && offsetof(TakenCall, to) == 0 &&
              offsetof(TakenCall, to_profiled) == 8);

// The variable of a call is perdure_taken_X, to whoever writes assembly too.
#define PERDURE_DECLARE_TAKEN(x, ...) \
  extern "C" [[gnu::visibility("hidden")]] perdure::TakenCall perdure_taken_##x;
#define PERDURE_DEFINE_TAKEN(x, ...) \
  constinit perdure::TakenCall perdure_taken_##x{nullptr, nullptr, #x};

}  // namespace perdure
