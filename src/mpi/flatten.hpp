// SPDX-License-Identifier: BSD-3-Clause
//
// From how a datatype was made (MPI's envelope and contents) to where its bytes lie.
//
// Every combiner of MPI 3.1 and 4.0 is known. Failure: see datatype_map.hpp.
#pragma once

#include <mpi.h>

#include <functional>

#include "base/status.hpp"
#include "mpi/byte_runs.hpp"

namespace perdure {

using MapOf = std::function<Result<const DatatypeMap*>(MPI_Datatype)>;

struct Flattened {
  DatatypeMap map;
  bool predefined;  // never freed: named, or of a Fortran 90 precision
};

// `map_of` gives the maps of the types that `type` is made of.
Result<Flattened> flatten(MPI_Datatype type, const MapOf& map_of);

}  // namespace perdure
