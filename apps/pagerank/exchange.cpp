// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <mpi.h>

#include <climits>

#include "job/collective.hpp"

namespace pagerank {

std::vector<std::uint64_t> exchange_words(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint64_t> came(words.size());
  const std::uint64_t* sent = words.data();
  std::uint64_t* to = came.data();
  MPI_Alltoall(sent, 1, MPI_UINT64_T, to, 1, MPI_UINT64_T, MPI_COMM_WORLD);
  return came;
}

std::vector<std::uint32_t> exchange_lists(const std::vector<std::vector<std::uint32_t>>& lists,
                                          std::vector<int>& counts) {
  const std::size_t ranks = lists.size();
  std::uint64_t total = 0;
  for (const auto& list : lists) total += list.size();
  if (job::max_over_ranks(total) > INT_MAX) {
    throw job::SharedError("a rank needs more than 2^31 nodes of others; use more ranks");
  }
  std::vector<int> sizes(ranks), starts(ranks), places(ranks);
  std::vector<std::uint32_t> sent;
  sent.reserve(total);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    sizes[rank] = static_cast<int>(lists[rank].size());
    starts[rank] = static_cast<int>(sent.size());
    sent.insert(sent.end(), lists[rank].begin(), lists[rank].end());
  }
  counts.assign(ranks, 0);
  MPI_Alltoall(sizes.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::uint64_t received = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    places[rank] = static_cast<int>(received);
    received += static_cast<std::uint64_t>(counts[rank]);
  }
  if (job::max_over_ranks(received) > INT_MAX) {
    throw job::SharedError("a rank has more than 2^31 nodes that others need; use more ranks");
  }
  std::vector<std::uint32_t> all(received);
  MPI_Alltoallv(sent.data(), sizes.data(), starts.data(), MPI_UINT32_T, all.data(), counts.data(),
                places.data(), MPI_UINT32_T, MPI_COMM_WORLD);
  return all;
}

}  // namespace pagerank
