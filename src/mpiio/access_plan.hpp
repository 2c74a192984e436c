// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes of memory go to which bytes of a file, in one access.
//
// The bytes that items of a datatype carry, in the order of its map, are those that the view shows
// from a position on. Pure; see byte_runs.hpp and file_view.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "mpi/byte_runs.hpp"
#include "mpiio/file_view.hpp"

namespace perdure {

namespace access_plan {

// `visit` may return nothing, which means to go on.
template <typename Visit>
bool call(Visit& visit, std::int64_t file_offset, char* memory, std::int64_t bytes) {
  if constexpr (std::is_void_v<decltype(visit(file_offset, memory, bytes))>) {
    visit(file_offset, memory, bytes);
    return true;
  } else {
    return visit(file_offset, memory, bytes);
  }
}

template <typename MemoryWalk, typename FileWalk, typename Visit>
bool zip(MemoryWalk memory, char* base, FileWalk file, std::int64_t displacement,
         std::int64_t bytes, Visit& visit) {
  while (bytes > 0) {
    const std::int64_t piece = std::min({memory.left(), file.left(), bytes});
    if (piece <= 0) return true;  // a type, or a view, without bytes
    if (!call(visit, displacement + file.offset(), base + memory.offset(), piece)) return false;
    memory.advance(piece);
    file.advance(piece);
    bytes -= piece;
  }
  return true;
}

template <typename Visit>
[[gnu::noinline]] bool scattered(const DatatypeMap& memory, char* base, const FileView& view,
                                 std::int64_t at, std::int64_t bytes, Visit& visit) {
  const std::int64_t from = view.displacement;
  const RunWalk items(memory.runs, memory.starts, memory.size_bytes, memory.extent_bytes, 0);
  if (view.contiguous) return zip(items, base, StraightWalk(at), from, bytes, visit);
  if (memory.contiguous) {
    return zip(StraightWalk(0), base, view.walk_from(at), from, bytes, visit);
  }
  return zip(items, base, view.walk_from(at), from, bytes, visit);
}

}  // namespace access_plan

// Calls visit(RegularRun) -> bool for the `bytes` bytes from position `at` of a view of regular
// runs, in order; stops, and says false, when visit does.
template <typename Visit>
bool for_each_run(const FileView& view, std::int64_t at, std::int64_t bytes, Visit&& visit) {
  constexpr std::int64_t count_max = 1 << 30;
  const auto runs = static_cast<std::int64_t>(view.runs.size());
  while (bytes > 0) {
    const std::int64_t item = at / view.filetype_bytes;
    const std::int64_t number = at % view.filetype_bytes / view.run_bytes;
    const std::int64_t inside = at % view.run_bytes;
    const std::int64_t offset = view.displacement + item * view.filetype_extent +
                                view.runs.front().offset + number * view.stride_bytes + inside;
    RegularRun run{offset, view.stride_bytes, view.run_bytes, 1};
    if (inside != 0 || bytes < view.run_bytes) {
      run.bytes = std::min(view.run_bytes - inside, bytes);
    } else {
      run.count = std::min({bytes / view.run_bytes, runs == 1 ? count_max : runs - number});
    }
    if (!visit(std::as_const(run))) return false;
    at += run.bytes * run.count;
    bytes -= run.bytes * run.count;
  }
  return true;
}

// Calls visit(file_offset, char* memory, bytes) for the first `total_bytes` that items of `memory`
// at `base` carry, against position `at` of the view. Stops, and says false, when visit returns
// false. Where both sides are contiguous it is one call, inlined: the path that counts.
template <typename Visit>
inline bool for_each_pair(const DatatypeMap& memory, void* base, const FileView& view,
                          std::int64_t at, std::int64_t total_bytes, Visit&& visit) {
  char* const bytes_at = static_cast<char*>(base);
  if (memory.contiguous && view.contiguous) [[likely]] {
    if (total_bytes <= 0) return true;
    return access_plan::call(visit, view.displacement + at, bytes_at, total_bytes);
  }
  return access_plan::scattered(memory, bytes_at, view, at, total_bytes, visit);
}

}  // namespace perdure
