// The reductions over the ranks that the solver and the report need.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace hpccg {

// Sum over the ranks, added in the order of the ranks: MPI_SUM may add in another order each time.
double sum_over_ranks(double local);

double max_over_ranks(double local);
std::uint64_t sum_over_ranks(std::uint64_t local);
std::uint64_t max_over_ranks(std::uint64_t local);
std::uint64_t min_over_ranks(std::uint64_t local);

// Hash of the ranks' vectors as one vector in the order of the ranks; known on the last rank and
// returned on all. FNV-1a, on words of 64 bits instead of bytes.
std::uint64_t hash_over_ranks(const double* elements, std::size_t count);

}  // namespace hpccg
