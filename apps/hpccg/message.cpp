#include "message.hpp"

#include <cstring>
#include <vector>

namespace hpccg {
namespace {

template <typename T>
T reduced(T local, MPI_Datatype type, MPI_Op operation) {
  T all{};
  MPI_Allreduce(&local, &all, 1, type, operation, MPI_COMM_WORLD);
  return all;
}

}  // namespace

double sum_over_ranks(double local) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) return local;
  std::vector<double> parts(static_cast<std::size_t>(ranks));
  MPI_Allgather(&local, 1, MPI_DOUBLE, parts.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

double max_over_ranks(double local) {
  return reduced(local, MPI_DOUBLE, MPI_MAX);
}
std::uint64_t sum_over_ranks(std::uint64_t local) {
  return reduced(local, MPI_UINT64_T, MPI_SUM);
}
std::uint64_t max_over_ranks(std::uint64_t local) {
  return reduced(local, MPI_UINT64_T, MPI_MAX);
}
std::uint64_t min_over_ranks(std::uint64_t local) {
  return reduced(local, MPI_UINT64_T, MPI_MIN);
}

std::uint64_t hash_over_ranks(const double* elements, std::size_t count) {
  constexpr std::uint64_t offset_basis = 0xcbf29ce484222325U;
  constexpr std::uint64_t prime = 0x100000001b3U;
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::uint64_t hash = offset_basis;
  if (rank > 0) {
    MPI_Recv(&hash, 1, MPI_UINT64_T, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, elements + i, sizeof word);
    hash = (hash ^ word) * prime;
  }
  if (rank + 1 < ranks) MPI_Send(&hash, 1, MPI_UINT64_T, rank + 1, 0, MPI_COMM_WORLD);
  MPI_Bcast(&hash, 1, MPI_UINT64_T, ranks - 1, MPI_COMM_WORLD);
  return hash;
}

}  // namespace hpccg
