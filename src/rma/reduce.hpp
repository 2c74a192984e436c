// SPDX-License-Identifier: BSD-3-Clause
//
// What accumulates compute: MPI's predefined operations on elements that lie as datatypes say.
// Pure, without MPI.
//
// Threads: values. Failure: no function for an operation that MPI does not allow on an element.
// The layouts must be in memory; the target must not overlap the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/byte_runs.hpp"
#include "rma/copy_runs.hpp"

namespace perdure {

enum class Reduction : std::uint8_t {
  sum,
  prod,
  min,
  max,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  replace,
  no_op,
};

// Each element of the target becomes (what it is) op (that of the origin); `bytes` of whole ones.
using Reduce = void (*)(std::byte* target, const std::byte* origin, std::size_t bytes);

// Null: the operation is none of that element.
Reduce reduction(Reduction op, Element element);

// What MPI_Compare_and_swap may swap.
bool is_swappable(Element element);

// An accumulate, which is made piece by piece. All layouts are of the same elements.
class ReducingWalk {
 public:
  // `result`, unless it is null, gets what the target held.
  ReducingWalk(Reduce reduce, const Runs& target, const Runs& origin, const Runs* result);
  void advance(std::int64_t bytes);  // of whole elements

 private:
  struct Side {
    explicit Side(const Runs& runs);
    std::byte* at() const;
    std::byte* memory;
    RunWalk walk;
  };

  Reduce reduce_;
  bool fetches_;
  Side target_;
  Side origin_;
  Side result_;
};

}  // namespace perdure
