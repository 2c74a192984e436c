// SPDX-License-Identifier: BSD-3-Clause
//
// Transfer: moves the bytes of one access between the user's memory and a cached file.
//
// Threads: any. Failure: what was moved before it stays moved; the status says nothing of it.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/status.hpp"
#include "mpi/datatype_map.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/access_plan.hpp"
#include "mpiio/open_file.hpp"

namespace perdure {

// The user's memory of an access.
struct Items {
  void* buffer;
  std::int64_t count;
  const DatatypeMap* map;

  std::int64_t bytes() const { return count * map->size_bytes; }
};

// Position `at` of the view, in bytes. Returns how many bytes were moved: fewer than asked for only
// when reading reaches the end of the file.
Result<std::int64_t> transfer(OpenFile& open, Direction direction, const Items& items,
                              std::int64_t at);

void count_access(CacheTally& tally, Direction direction, std::int64_t bytes);

// How much of `bytes` bytes from `at` on can be read.
Result<std::int64_t> readable_bytes(OpenFile& open, std::int64_t at, std::int64_t bytes);

}  // namespace perdure
