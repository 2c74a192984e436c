// SPDX-License-Identifier: BSD-3-Clause
//
// The keys of an MPI_Info as a map. Empty for MPI_INFO_NULL. Threads: any.
#pragma once

#include <mpi.h>

#include "base/key_values.hpp"

namespace perdure {

KeyValues read_info(MPI_Info info);

}  // namespace perdure
