// SPDX-License-Identifier: BSD-3-Clause
//
// Maps of datatypes that tests draw.
#pragma once

#include <cstdint>
#include <random>

#include "mpi/byte_runs.hpp"
#include "mpi/run_list.hpp"

namespace perdure {

using Generator = std::mt19937_64;

inline std::int64_t between(Generator& draw, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(last - first + 1));
}

inline DatatypeMap map_of_runs(RunList& list, std::int64_t extent) {
  DatatypeMap map;
  map.runs = list.take();
  map.extent_bytes = extent;
  for (const ByteRun& run : map.runs) map.size_bytes += run.bytes;
  measure_runs(map);
  return map;
}

}  // namespace perdure
