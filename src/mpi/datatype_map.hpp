// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of an MPI datatype lie.
//
// A map is made at the type's first use and kept with the type itself, as an attribute, so that it
// goes when the type goes: a handle that is used again for another type never finds the old map.
// Predefined types, which never go, are in a small table that is read without a lock or a call.
//
// Threads: any, as far as MPI allows calls from them. Failure: a type that is null; a type of more
// than 2^24 runs (Code::unsupported).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/status.hpp"
#include "mpi/byte_runs.hpp"

namespace perdure {

// The map of `type`, which lives as long as the type does: a freed type lives on in types made of
// it, and in operations under way.
Result<const DatatypeMap*> map_of(MPI_Datatype type);

// The map of `type` if it was used before by this thread, or is predefined; else null. Makes none.
const DatatypeMap* known_map(MPI_Datatype type);

// How often this thread asked here for a type whose map is not known, from 1; more if it can't say.
std::uint32_t times_met(MPI_Datatype type);

}  // namespace perdure
