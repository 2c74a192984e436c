#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "npb/ranks.hpp"

namespace npb::ranks {
namespace {

template <typename T>
T reduced(T local, MPI_Datatype type, MPI_Op operation) {
  T all{};
  MPI_Allreduce(&local, &all, 1, type, operation, MPI_COMM_WORLD);
  return all;
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
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int count() {
  int count = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

double sum(double local) {
  return reduced(local, MPI_DOUBLE, MPI_SUM);
}
std::uint64_t sum(std::uint64_t local) {
  return reduced(local, MPI_UINT64_T, MPI_SUM);
}
double max(double local) {
  return reduced(local, MPI_DOUBLE, MPI_MAX);
}

void gather_blocks(double* numbers, Index n) {
  const int ranks = count();
  std::vector<int> counts, starts;
  for (int r = 0; r < ranks; ++r) {
    starts.push_back(static_cast<int>(block_begin(n, r)));
    counts.push_back(static_cast<int>(block_begin(n, r + 1) - block_begin(n, r)));
  }
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, numbers, counts.data(), starts.data(),
                 MPI_DOUBLE, MPI_COMM_WORLD);
}

void swap_with_neighbours(const double* down, const double* up, double* from_before,
                          double* from_after, Index n) {
  const int ranks = count();
  const int before = (rank() + ranks - 1) % ranks;
  const int after = (rank() + 1) % ranks;
  const int each = static_cast<int>(n);
  MPI_Sendrecv(up, each, MPI_DOUBLE, after, 0, from_before, each, MPI_DOUBLE, before, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(down, each, MPI_DOUBLE, before, 1, from_after, each, MPI_DOUBLE, after, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void send(int to, const double* numbers, Index n) {
  MPI_Send(numbers, static_cast<int>(n), MPI_DOUBLE, to, 2, MPI_COMM_WORLD);
}
void receive(int from, double* numbers, Index n) {
  MPI_Recv(numbers, static_cast<int>(n), MPI_DOUBLE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace npb::ranks
