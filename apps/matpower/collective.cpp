#include "collective.hpp"

#include <climits>
#include <new>

namespace matpower {
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
  } catch (const SharedError& error) {
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

}  // namespace matpower
