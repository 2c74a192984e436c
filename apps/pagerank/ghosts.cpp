// SPDX-License-Identifier: BSD-3-Clause
#include "ghosts.hpp"

#include "job/collective.hpp"

namespace pagerank {

void Ghosts::put(MPI_Win window, const double* own) {
  for (std::size_t i = 0; i < gathered_.size(); ++i) gathered_[i] = own[graph_.sent[i]];
  job::check_mpi(MPI_Win_fence(MPI_MODE_NOPRECEDE, window), "MPI_Win_fence");
  const double* piece = gathered_.data();
  for (std::size_t rank = 0; rank < graph_.sent_count.size(); ++rank) {
    const int count = graph_.sent_count[rank];
    if (count == 0) continue;
    job::check_mpi(MPI_Put(piece, count, MPI_DOUBLE, static_cast<int>(rank),
                           static_cast<MPI_Aint>(graph_.place_at[rank]), count, MPI_DOUBLE, window),
                   "MPI_Put");
    piece += count;
  }
  job::check_mpi(MPI_Win_fence(MPI_MODE_NOSUCCEED, window), "MPI_Win_fence");
}

}  // namespace pagerank
