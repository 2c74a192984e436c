// What the ranks of MPI_COMM_WORLD do together: reductions, and errors that all ranks learn of.
// All are collective but the two counts.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace matpower {

int this_rank();
int rank_count();

// An error that every rank throws at the same place, so that the job can end in order.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `local` on every rank. If it throws a SharedError or std::bad_alloc on some ranks, all throw
// a SharedError with the sentence of the lowest of them. Not for collective work.
void on_every_rank(const std::function<void()>& local);

// The text that the MPI has for an error code; empty for MPI_SUCCESS.
std::string mpi_text(int code);

double max_over_ranks(double local);
std::uint64_t sum_over_ranks(std::uint64_t local);
std::uint64_t max_over_ranks(std::uint64_t local);
std::uint64_t min_over_ranks(std::uint64_t local);

// Adds up the words of all ranks, each with those at the same place; all get the sums.
void add_over_ranks(std::vector<std::uint64_t>& words);

}  // namespace matpower
