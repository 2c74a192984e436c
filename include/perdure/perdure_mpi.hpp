// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_mpi.hpp: perdure.hpp for the ranks of a communicator. Link libperdure_mpi_<flavour>.
#ifndef PERDURE_PERDURE_MPI_HPP
#define PERDURE_PERDURE_MPI_HPP

#include <string>

#include "perdure/perdure.hpp"
#include "perdure/perdure_mpi.h"

namespace perdure {
inline namespace interface {

// As perdure_open_mpi(): the pool of all ranks of `comm`, which is duplicated. Collective over
// `comm`, as are the pool's array(), restart(), commit(), close() and its destruction. Errors: as
// of Pool(path), and PEER_FAILED where another rank failed.
inline Pool open_mpi(MPI_Comm comm, const std::string& path, const Options& options = {}) {
  const perdure_options c_options = options.to_c();
  perdure_pool* handle = nullptr;
  check(perdure_open_mpi(comm, path.c_str(), &c_options, &handle));
  return Pool(handle);
}

}  // namespace interface
}  // namespace perdure
#endif
