// SPDX-License-Identifier: BSD-3-Clause
//
// Whether this library serves the MPI of this process: the handles that it was compiled for are
// those that the process has.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include "base/status.hpp"
#include "mpi/process_mpi.hpp"

namespace perdure {

// What <mpi.h> was when this was compiled.
#if defined(MPI_ABI_VERSION)
inline constexpr MpiAbi served_abi = MpiAbi::standard;
#elif defined(OPEN_MPI)
inline constexpr MpiAbi served_abi = MpiAbi::openmpi;
#elif defined(MPICH_VERSION)
inline constexpr MpiAbi served_abi = MpiAbi::mpich;
#else
inline constexpr MpiAbi served_abi = MpiAbi::other;
#endif

// An error, Code::unsupported, if this library stands aside. A process without any MPI library,
// which may be linked statically, is served. Decides when it is first asked; then it also says so
// in a line, or makes the MPI library visible to our calls of it.
const Status& mpi_is_served();

}  // namespace perdure
