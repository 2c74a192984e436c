// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of an application, those of MPI_COMM_WORLD, do together: sums that come out the
// same in every run, hashes of what they all hold, and errors that all learn of. All are collective
// but the two counts and the texts.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace job {

int this_rank();
int rank_count();

// An error that every rank throws at the same place, so that the job can end in order.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `local` on every rank. If it throws a std::runtime_error or std::bad_alloc on some ranks,
// all throw a SharedError with the sentence of the lowest of them. Not for collective work.
void on_every_rank(const std::function<void()>& local);

// The text that the MPI has for an error code; empty for MPI_SUCCESS.
std::string mpi_text(int code);

// Throws std::runtime_error unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

double max_over_ranks(double local);
std::uint64_t sum_over_ranks(std::uint64_t local);
std::uint64_t max_over_ranks(std::uint64_t local);
std::uint64_t min_over_ranks(std::uint64_t local);

// Sums over the ranks, added in their order: MPI_SUM may add in another order each time.
void sum_in_order(double* values, std::size_t count);
double sum_over_ranks(double local);
template <std::size_t count>
std::array<double, count> sum_over_ranks(std::array<double, count> local) {
  sum_in_order(local.data(), count);
  return local;
}

// Adds up the words of all ranks, each with those at the same place; all get the sums.
void add_over_ranks(std::vector<std::uint64_t>& words);

// Where the pieces with these counts begin, one after another.
std::vector<int> starts_of(const std::vector<int>& counts);

// FNV-1a on words of 64 bits instead of bytes.
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

// Sixteen hexadecimal digits.
std::string hex(std::uint64_t value);

}  // namespace job
