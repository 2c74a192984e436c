// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <mpi.h>

#include <climits>
#include <numeric>

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
  std::uint64_t total = 0;
  for (const auto& list : lists) total += list.size();
  if (job::max_over_ranks(total) > INT_MAX) {
    throw job::SharedError("a rank needs more than 2^31 nodes of others; use more ranks");
  }
  std::vector<int> sizes;
  std::vector<std::uint32_t> sent;
  sent.reserve(total);
  for (const auto& list : lists) {
    sizes.push_back(static_cast<int>(list.size()));
    sent.insert(sent.end(), list.begin(), list.end());
  }
  counts.assign(lists.size(), 0);
  MPI_Alltoall(sizes.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const auto received = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (job::max_over_ranks(received) > INT_MAX) {
    throw job::SharedError("a rank has more than 2^31 nodes that others need; use more ranks");
  }
  std::vector<std::uint32_t> all(received);
  MPI_Alltoallv(sent.data(), sizes.data(), job::starts_of(sizes).data(), MPI_UINT32_T, all.data(),
                counts.data(), job::starts_of(counts).data(), MPI_UINT32_T, MPI_COMM_WORLD);
  return all;
}

}  // namespace pagerank
