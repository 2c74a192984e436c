// SPDX-License-Identifier: BSD-3-Clause
//
// The elements of MPI's predefined datatypes. Threads: any.
#pragma once

#include <mpi.h>

#include "mpi/element.hpp"

namespace perdure {

// Of a predefined datatype; `other` of any other handle, and of all of Open MPI's, whose
// accumulates are never Perdure's.
Element element_of(MPI_Datatype type);

}  // namespace perdure
