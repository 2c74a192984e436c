// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_mpi.h: opens a pool for the ranks of a communicator.
#include "perdure/perdure_mpi.h"

#include "base/agreement.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/served_mpi.hpp"
#include "mpi/watch_commits.hpp"
#include "pool_handle.hpp"

namespace {

perdure::Status agree_to_open(perdure::Group& group, const perdure::Status& local) {
  const perdure::CollectiveCall call(group, "perdure_open_mpi");
  return agree(group, local);
}

}  // namespace

extern "C" int perdure_open_mpi(MPI_Comm comm, const char* path, const perdure_options* options,
                                perdure_pool** pool) {
  return perdure::guarded([&]() -> perdure::Status {
    PERDURE_TRY(perdure::mpi_is_served());
    PERDURE_TRY_ASSIGN(auto group, perdure::MpiGroup::create(comm));
    const MPI_Comm own = group->comm();
    const auto patience = perdure::commit_patience_of_environment();
    PERDURE_TRY(agree_to_open(*group, patience.status()));
    PERDURE_TRY(perdure::open_handle(std::move(group), path, options, pool));
    (*pool)->watch = perdure::watch_commits(own, path, patience.value());
    return perdure::Status::success();
  });
}

// For fortran/perdure_mpi.f90. Handles are Fortran's integers, which the standard ABI calls
// integers.
extern "C" PERDURE_API int perdure_open_mpi_f(const int* comm, const char* path,
                                              const perdure_options* options, perdure_pool** pool) {
#ifdef MPI_ABI_VERSION
  return perdure_open_mpi(PMPI_Comm_fromint(*comm), path, options, pool);
#else
  return perdure_open_mpi(PMPI_Comm_f2c(*comm), path, options, pool);
#endif
}
