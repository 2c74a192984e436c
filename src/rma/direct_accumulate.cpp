// SPDX-License-Identifier: BSD-3-Clause
#include "rma/direct_accumulate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "mpi/element_types.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/reduce.hpp"

namespace perdure {
namespace {

#ifdef OPEN_MPI
std::optional<Reduction> reduction_of(MPI_Op) {
  return std::nullopt;  // its accumulates are never made here
}
#else
std::optional<Reduction> reduction_of(MPI_Op op) {
  // As Reduction counts them.
  static const std::array ops{MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND,    MPI_BOR,
                              MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_REPLACE, MPI_NO_OP};
  const auto found = std::ranges::find(ops, op);
  if (found == ops.end()) return std::nullopt;
  return static_cast<Reduction>(found - ops.begin());
}
#endif

// Gives MPI the processor: what the target does before it posts may wait for this rank.
void let_mpi_work() {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_self(), &found, MPI_STATUS_IGNORE);
  std::this_thread::yield();
}

bool await_access(Window& window, int target, int& error) {
  const auto rank = static_cast<std::size_t>(target);
  if (window.locks == 0 && !window.fenced && window.boards.posts->is_started(rank)) {
    while (!window.boards.posts->is_posted(rank)) let_mpi_work();
  }
  return may_access(window, target, least_awaited_bytes, error);
}

// Of a target's memory, for one call.
template <typename Do>
void with_lock(Window& window, int target, const Do& change) {
  window.boards.target_locks->lock(static_cast<std::size_t>(target));
  change();
  window.boards.target_locks->unlock(static_cast<std::size_t>(target));
}

// The maps of a call's sides; `origin` is the target's where the origin does not matter.
struct Maps {
  const DatatypeMap* target = nullptr;
  const DatatypeMap* origin = nullptr;
  const DatatypeMap* result = nullptr;
  std::int64_t bytes = 0;
};

// Whether a side carries the same elements as the target.
bool matches(const Window& window, int target, const Side& side, const Maps& maps,
             const DatatypeMap*& map, int& error) {
  map = shown_map(window, target, side.type, error);
  return map != nullptr && map->element == maps.target->element &&
         bytes_of(*map, side.count) == maps.bytes;
}

// False: there is an error, or the call is MPI's, which knows the elements or what is wrong.
bool find_maps(const Window& window, const Accumulation& call, Reduction op, Maps& maps,
               int& error) {
  maps.target = shown_map(window, call.target, call.at_target.type, error);
  if (maps.target == nullptr || reduction(op, maps.target->element) == nullptr) return false;
  maps.bytes = bytes_of(*maps.target, call.at_target.count);
  if (maps.bytes <= 0) return false;
  maps.origin = maps.result = maps.target;
  return (op == Reduction::no_op ||
          matches(window, call.target, call.origin, maps, maps.origin, error)) &&
         (!call.fetches || matches(window, call.target, call.at_result, maps, maps.result, error));
}

constexpr std::int64_t bytes_at_a_time = 64 << 10;  // others may want the lock

void accumulate_pieces(Window& window, const Accumulation& call, Reduce reduce, const Maps& maps,
                       std::byte* memory, bool reads_origin) {
  auto* origin = static_cast<std::byte*>(const_cast<void*>(call.memory));
  const Runs at_target = {memory, maps.target};
  const Runs result = {static_cast<std::byte*>(call.result), maps.result};
  ReducingWalk walk(reduce, at_target, reads_origin ? Runs{origin, maps.origin} : at_target,
                    call.fetches ? &result : nullptr);
  for (std::int64_t left = maps.bytes; left > 0; left -= bytes_at_a_time) {
    with_lock(window, call.target, [&] { walk.advance(std::min(left, bytes_at_a_time)); });
  }
}

}  // namespace

bool accumulated_directly(Window& window, const Accumulation& call, int& error) {
  error = MPI_SUCCESS;
  const std::optional<Reduction> op = reduction_of(call.op);
  if (!op || (*op == Reduction::no_op && !call.fetches)) return false;
  Maps maps;
  if (!find_maps(window, call, *op, maps, error)) return error != MPI_SUCCESS;
  std::byte* memory =
      reachable(window, call.target, call.at, span_of(*maps.target, call.at_target.count));
  if (memory == nullptr || !await_access(window, call.target, error)) return false;
  if (error != MPI_SUCCESS) return true;
  window.pending.store(true, std::memory_order_relaxed);
  accumulate_pieces(window, call, reduction(*op, maps.target->element), maps, memory,
                    *op != Reduction::no_op);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

bool accumulated_directly(Window& window, const Swap& call, int& error) {
  error = MPI_SUCCESS;
  if (!is_swappable(element_of(call.type))) return false;
  const DatatypeMap* map = shown_map(window, call.target, call.type, error);
  if (map == nullptr) return error != MPI_SUCCESS;
  std::byte* memory = reachable(window, call.target, call.at, span_of(*map, 1));
  if (memory == nullptr || !await_access(window, call.target, error)) return false;
  if (error != MPI_SUCCESS) return true;
  window.pending.store(true, std::memory_order_relaxed);
  const auto bytes = static_cast<std::size_t>(map->size_bytes);
  with_lock(window, call.target, [&] {
    std::memcpy(call.result, memory, bytes);
    if (std::memcmp(memory, call.compare, bytes) == 0) std::memcpy(memory, call.memory, bytes);
  });
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace perdure
