#include "collective.hpp"

#include <climits>
#include <cstring>
#include <new>

#include "arcs.hpp"

namespace pagerank {
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
  } catch (const InputError& error) {
    problem = error.what();
  } catch (const SharedError& error) {
    problem = error.what();
  } catch (const std::bad_alloc&) {
    problem = "rank " + std::to_string(this_rank()) + " has too little memory; use more nodes";
  }
  share(problem);
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + text);
}

std::array<double, 3> sum_over_ranks(const std::array<double, 3>& local) {
  const int ranks = rank_count();
  if (ranks == 1) return local;
  std::vector<std::array<double, 3>> parts(static_cast<std::size_t>(ranks));
  MPI_Allgather(local.data(), 3, MPI_DOUBLE, parts.data(), 3, MPI_DOUBLE, MPI_COMM_WORLD);
  std::array<double, 3> sums{};
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
  }
  return sums;
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

void add_over_ranks(std::vector<std::uint64_t>& words) {
  std::uint64_t* all = words.data();
  MPI_Allreduce(MPI_IN_PLACE, all, static_cast<int>(words.size()), MPI_UINT64_T, MPI_SUM,
                MPI_COMM_WORLD);
}

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
  if (max_over_ranks(total) > INT_MAX) {
    throw SharedError("a rank needs more than 2^31 nodes of others; use more ranks");
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
  if (max_over_ranks(received) > INT_MAX) {
    throw SharedError("a rank has more than 2^31 nodes that others need; use more ranks");
  }
  std::vector<std::uint32_t> all(received);
  MPI_Alltoallv(sent.data(), sizes.data(), starts.data(), MPI_UINT32_T, all.data(), counts.data(),
                places.data(), MPI_UINT32_T, MPI_COMM_WORLD);
  return all;
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

}  // namespace pagerank
