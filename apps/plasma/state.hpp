// SPDX-License-Identifier: BSD-3-Clause
//
// State: what the program must have to go on, in a pool that any number of ranks can go on with, or
// only in memory.
//
//   particles   a list over all ranks: another number of ranks divides it anew
//   potential   a part of a global array, by its box
//   step        a scalar, the same on all ranks
//
// Collective. Threads: one. Failure: perdure::Error, and job::SharedError where it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <perdure/perdure_mpi.hpp>
#include <span>
#include <string>
#include <vector>

#include "plasma.hpp"

namespace plasma {

class State {
 public:
  State(const Rows& rows, const std::string& pool);

  std::vector<Particle>& particles() { return particles_; }
  std::span<double> potential() { return potential_; }
  std::uint64_t step = 0;

  // False: there is nothing to go on with.
  bool restore();
  unsigned old_ranks() const { return old_ranks_; }
  void commit();

 private:
  void open_arrays(const Rows& rows);

  std::vector<Particle> particles_;
  std::vector<double> potential_;
  unsigned old_ranks_ = 0;
  std::optional<perdure::Pool> pool_;
};

}  // namespace plasma
