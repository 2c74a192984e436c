// SPDX-License-Identifier: BSD-3-Clause
//
// Machine memory: a few bytes that all ranks of one machine see, for words that tell each other
// where they are.
//
// Nothing of it has to be given back together: a rank that goes takes its mapping along, and the
// last one the memory. No name is left, unless all ranks are killed while it is made.
//
// Threads: as MPI's collective calls. Failure: on all ranks or on none; a null pointer, as whoever
// asks can do without.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace perdure {

// Collective over `machine`, the ranks of one machine: zeros, at the beginning of a page.
std::shared_ptr<std::byte> share_memory(MPI_Comm machine, std::size_t bytes);

}  // namespace perdure
