// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <climits>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "job/collective.hpp"
#include "npb/ranks.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_mpi.h"

namespace npb::ranks {
namespace {

// Counts of blocks and where each begins, as MPI expects them.
struct Blocks {
  explicit Blocks(const std::vector<Index>& sizes) {
    Index start = 0;
    for (const Index size : sizes) {
      starts.push_back(static_cast<int>(start));
      counts.push_back(static_cast<int>(size));
      start += size;
    }
    if (start > INT_MAX) {
      throw std::runtime_error("this rank's " + std::to_string(start) +
                               " numbers are more than MPI counts in a message; use more ranks");
    }
  }
  std::vector<int> counts, starts;
};

// MPI libraries let the kernel store what is received, which can't store to the write-protected
// objects of in-place versioning.
void announce(double* numbers, Index n) {
  perdure_ipv_touch(numbers, static_cast<std::size_t>(n) * sizeof *numbers);
}

}  // namespace

void start(int& argc, char**& argv) {
  MPI_Init(&argc, &argv);
}
void finish() {
  MPI_Finalize();
}
void abort() {
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}
int rank() {
  return job::this_rank();
}
int count() {
  return job::rank_count();
}

double sum(double local) {
  return job::sum_over_ranks(local);
}
std::uint64_t sum(std::uint64_t local) {
  return job::sum_over_ranks(local);
}
double max(double local) {
  return job::max_over_ranks(local);
}
std::uint64_t min(std::uint64_t local) {
  return job::min_over_ranks(local);
}
int open_pool(const char* path, const perdure_options* options, perdure_pool** pool) {
  return perdure_open_mpi(MPI_COMM_WORLD, path, options, pool);
}

void gather_blocks(double* numbers, Index n) {
  announce(numbers, n);
  const int ranks = count();
  std::vector<Index> sizes;
  for (int r = 0; r < ranks; ++r) sizes.push_back(block_begin(n, r + 1) - block_begin(n, r));
  const Blocks blocks(sizes);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, numbers, blocks.counts.data(),
                 blocks.starts.data(), MPI_DOUBLE, MPI_COMM_WORLD);
}

void swap_with_neighbours(const double* down, const double* up, double* from_before,
                          double* from_after, Index n) {
  const int ranks = count();
  const int before = (rank() + ranks - 1) % ranks;
  const int after = (rank() + 1) % ranks;
  const int each = static_cast<int>(n);
  announce(from_before, n);
  announce(from_after, n);
  MPI_Sendrecv(up, each, MPI_DOUBLE, after, 0, from_before, each, MPI_DOUBLE, before, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(down, each, MPI_DOUBLE, before, 1, from_after, each, MPI_DOUBLE, after, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void send(int to, const double* numbers, Index n) {
  MPI_Send(numbers, static_cast<int>(n), MPI_DOUBLE, to, 2, MPI_COMM_WORLD);
}
void receive(int from, double* numbers, Index n) {
  announce(numbers, n);
  MPI_Recv(numbers, static_cast<int>(n), MPI_DOUBLE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void exchange(const double* out, const std::vector<Index>& out_counts, double* in,
              const std::vector<Index>& in_counts) {
  const Blocks sent(out_counts), received(in_counts);
  MPI_Alltoallv(out, sent.counts.data(), sent.starts.data(), MPI_DOUBLE, in, received.counts.data(),
                received.starts.data(), MPI_DOUBLE, MPI_COMM_WORLD);
}

}  // namespace npb::ranks
