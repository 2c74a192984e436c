// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between two layouts of bytes: items of datatypes, as MPI packs them. Pure.
//
// Threads: any. Failure: none; the layouts must be in memory, and not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/byte_runs.hpp"

namespace perdure {

// Where items of a datatype lie, one extent after another.
struct Runs {
  std::byte* memory;
  const DatatypeMap* map;
};

// Memory that a map describes absolutely (MPI_BOTTOM) begins at null.
inline std::byte* place_at(std::byte* memory, std::int64_t offset) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(memory) + offset);
}

// The bytes that `count` items touch, from where the first lies; not valid if they would not fit
// into 64 bits.
struct ByteSpan {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool valid = true;
};
ByteSpan span_of(const DatatypeMap& map, std::int64_t count);

// The first `bytes` carried bytes.
void copy_runs(const Runs& to, const Runs& from, std::int64_t bytes);

}  // namespace perdure
