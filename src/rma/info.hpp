// The keys of an MPI_Info as a map. Empty for MPI_INFO_NULL. Threads: any.
#pragma once

#include <mpi.h>

#include "rma/window_options.hpp"

namespace perdure {

KeyValues read_info(MPI_Info info);

}  // namespace perdure
