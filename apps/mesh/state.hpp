// SPDX-License-Identifier: BSD-3-Clause
//
// State: what the program must have to go on, in a pool that any number of ranks can go on with, or
// only in memory.
//
//   blocks   a list over all ranks: another number of ranks divides it anew
//   step     a scalar, the same on all ranks
//
// Collective. Threads: one. Failure: perdure::Error, and job::SharedError where it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <perdure/perdure_mpi.hpp>
#include <string>
#include <vector>

#include "mesh.hpp"

namespace mesh {

class State {
 public:
  // `finest` is noted, and a pool of another one refused.
  State(const std::string& pool, int finest);

  std::vector<Block>& blocks() { return blocks_; }
  std::uint64_t step = 0;

  // False: there is nothing to go on with.
  bool restore();
  unsigned old_ranks() const { return old_ranks_; }
  void commit();

 private:
  std::vector<Block> blocks_;
  const std::int32_t asked_;
  std::int32_t finest_;
  unsigned old_ranks_ = 0;
  std::optional<perdure::Pool> pool_;
};

}  // namespace mesh
