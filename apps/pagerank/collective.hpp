// What the ranks of MPI_COMM_WORLD do together: sums that come out the same in every run, errors
// that all ranks learn of, and exchanges of lists. All are collective.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pagerank {

int this_rank();
int rank_count();

// An error that every rank throws at the same place, so that the job can end in order.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `local` on every rank. If it throws an InputError, a SharedError or std::bad_alloc on some
// ranks, all throw a SharedError with the sentence of the lowest of them. Not for collective work.
void on_every_rank(const std::function<void()>& local);

// Throws std::runtime_error unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// Sums over the ranks, added in their order: MPI_SUM may add in another order each time.
std::array<double, 3> sum_over_ranks(const std::array<double, 3>& local);

double max_over_ranks(double local);
std::uint64_t sum_over_ranks(std::uint64_t local);
std::uint64_t max_over_ranks(std::uint64_t local);
std::uint64_t min_over_ranks(std::uint64_t local);

// Adds up the words of all ranks, each with those at the same place; all get the sums.
void add_over_ranks(std::vector<std::uint64_t>& words);

// Sends words[r] to rank r; returns what the ranks sent, in their order.
std::vector<std::uint64_t> exchange_words(const std::vector<std::uint64_t>& words);

// Sends lists[r] to rank r and returns what the ranks sent, in their order; counts[r] is how much
// of it is rank r's. Throws std::runtime_error if that is more than 2^31 elements.
std::vector<std::uint32_t> exchange_lists(const std::vector<std::vector<std::uint32_t>>& lists,
                                          std::vector<int>& counts);

// FNV-1a on words of 64 bits.
class Hash {
 public:
  explicit Hash(std::uint64_t start = 0xcbf29ce484222325U) : hash_(start) {}
  void add(std::uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3U; }
  void add(double value);
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_;
};

// The hash of all ranks' words in the order of the ranks: add_to adds those of the caller.
std::uint64_t hash_over_ranks(const std::function<void(Hash&)>& add_to);

}  // namespace pagerank
