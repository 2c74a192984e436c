// SPDX-License-Identifier: BSD-3-Clause
#include "collective.hpp"

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>
#include <numeric>

namespace job {
namespace {

template <typename T>
T reduced(T local, MPI_Datatype type, MPI_Op operation) {
  T all{};
  MPI_Allreduce(&local, &all, 1, type, operation, MPI_COMM_WORLD);
  return all;
}

// Throws on all ranks if a rank has a problem.
void share(std::string problem) {
  const int mine = problem.empty() ? INT_MAX : this_rank();
  const int lowest = reduced(mine, MPI_INT, MPI_MIN);
  if (lowest == INT_MAX) return;
  auto length = static_cast<std::uint64_t>(problem.size());
  MPI_Bcast(&length, 1, MPI_UINT64_T, lowest, MPI_COMM_WORLD);
  problem.resize(length);
  MPI_Bcast(problem.data(), static_cast<int>(length), MPI_CHAR, lowest, MPI_COMM_WORLD);
  throw SharedError(problem);
}

}  // namespace

int this_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int rank_count() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void on_every_rank(const std::function<void()>& local) {
  std::string problem;
  try {
    local();
  } catch (const std::runtime_error& error) {
    problem = error.what();
  } catch (const std::bad_alloc&) {
    problem = "rank " + std::to_string(this_rank()) + " has too little memory; use more nodes";
  }
  share(problem);
}

std::string mpi_text(int code) {
  if (code == MPI_SUCCESS) return "";
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) throw std::runtime_error(std::string(call) + ": " + mpi_text(code));
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

void sum_in_order(double* values, std::size_t count) {
  const int ranks = rank_count();
  if (ranks == 1) return;
  std::vector<double> parts(static_cast<std::size_t>(ranks) * count);
  const int each = static_cast<int>(count);
  MPI_Allgather(values, each, MPI_DOUBLE, parts.data(), each, MPI_DOUBLE, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 0;
    for (std::size_t at = i; at < parts.size(); at += count) values[i] += parts[at];
  }
}

double sum_over_ranks(double local) {
  sum_in_order(&local, 1);
  return local;
}

void add_over_ranks(std::vector<std::uint64_t>& words) {
  std::uint64_t* all = words.data();
  MPI_Allreduce(MPI_IN_PLACE, all, static_cast<int>(words.size()), MPI_UINT64_T, MPI_SUM,
                MPI_COMM_WORLD);
}

std::vector<int> starts_of(const std::vector<int>& counts) {
  std::vector<int> starts(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  return starts;
}

void Hash::add(double value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  add(word);
}

std::uint64_t hash_over_ranks(const std::function<void(Hash&)>& add_to) {
  const int rank = this_rank();
  const int ranks = rank_count();
  std::uint64_t start = Hash().value();
  if (rank > 0) {
    MPI_Recv(&start, 1, MPI_UINT64_T, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  Hash hash(start);
  add_to(hash);
  std::uint64_t value = hash.value();
  if (rank + 1 < ranks) MPI_Send(&value, 1, MPI_UINT64_T, rank + 1, 0, MPI_COMM_WORLD);
  MPI_Bcast(&value, 1, MPI_UINT64_T, ranks - 1, MPI_COMM_WORLD);
  return value;
}

std::string hex(std::uint64_t value) {
  char text[17] = "";
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

}  // namespace job
