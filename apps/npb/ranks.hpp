// SPDX-License-Identifier: BSD-3-Clause
//
// What a benchmark needs of the other ranks. ranks_mpi.cpp does it with MPI, ranks_serial.cpp for
// the programs without MPI, where there is one rank and nothing to send. All functions but
// rank, count and abort are collective, or meet a call of another rank. A failed call of MPI ends
// the job, as MPI does by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "npb/array.hpp"
#include "perdure/perdure.h"

namespace npb::ranks {

void start(int& argc, char**& argv);
void finish();
[[noreturn]] void abort();  // ends all ranks with exit code 1
int rank();
int count();

// Items 0 to n - 1 are dealt out in order: this is the first of rank r, and that of rank r + 1 is
// its end.
inline Index block_begin(Index n, int r) {
  return n * r / count();
}

double sum(double local);
std::uint64_t sum(std::uint64_t local);
double max(double local);
std::uint64_t min(std::uint64_t local);

// perdure_open() for all ranks together.
int open_pool(const char* path, const perdure_options* options, perdure_pool** pool);

// Each rank has its block of the n numbers; afterwards each has all.
void gather_blocks(double* numbers, Index n);

// Ranks are a ring. Sends `down` to the rank before and `up` to the rank after; receives what the
// rank before and the rank after sent to this one. Each has `n` numbers.
void swap_with_neighbours(const double* down, const double* up, double* from_before,
                          double* from_after, Index n);

// A message to a rank, and the next one from a rank, of `n` numbers. Where there is one rank there
// is nobody to call them for: a mistake of the program.
void send(int to, const double* numbers, Index n);
void receive(int from, double* numbers, Index n);

// Sends out_counts[r] of the numbers to each rank r, and receives in_counts[r] from each, both in
// the order of the ranks, this rank's own included. Throws std::runtime_error if there are more
// than MPI can count.
void exchange(const double* out, const std::vector<Index>& out_counts, double* in,
              const std::vector<Index>& in_counts);

}  // namespace npb::ranks
