// SPDX-License-Identifier: BSD-3-Clause
#include "rma/direct_copy.hpp"

#include <atomic>
#include <cstring>

#include "mpi/mpi_library.hpp"
#include "rma/copy_runs.hpp"
#include "rma/mpi_calls.hpp"

namespace perdure {
namespace {

bool is_named(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

constexpr std::uint32_t often = 4;

// Null: MPI is to do it, or has refused it with `error`. For a small transfer no map is made unless
// it is there to stay, or its type is used again and again. MPI sees each type before a map of it
// is made, however often its number was met: the number may have been another type's.
const DatatypeMap* map_if_useful(const Window& window, const Operation& operation, const Side& side,
                                 int& error) {
  static const MPI_Datatype null = type_null();
  if (const DatatypeMap* map = known_map(side.type)) return map;
  if (side.type == null) return nullptr;
  if (times_met(side.type) < often) {
    MPI_Count size = 0;
    std::int64_t bytes = 0;
    PMPI_Type_size_x(side.type, &size);
    const bool overflows = __builtin_mul_overflow(side.count, size, &bytes);
    if (!overflows && bytes < least_awaited_bytes && !is_named(side.type)) return nullptr;
  }
  error = show_type(window, operation.target, side.type);
  if (error != MPI_SUCCESS) return nullptr;
  const auto found = map_of(side.type);
  return found.ok() ? found.value() : nullptr;
}

}  // namespace

bool copied_directly(Window& window, const Operation& operation, int& error) {
  error = MPI_SUCCESS;
  const DatatypeMap* there = map_if_useful(window, operation, operation.at_target, error);
  const DatatypeMap* here =
      there == nullptr ? nullptr : map_if_useful(window, operation, operation.origin, error);
  if (here == nullptr) return error != MPI_SUCCESS;
  if (is_left_to_mpi(operation)) return false;  // its types were not known before
  const std::int64_t bytes = bytes_of(*there, operation.at_target.count);
  if (bytes <= 0 || bytes != bytes_of(*here, operation.origin.count)) return false;
  std::byte* target =
      reachable(window, operation.target, operation.at, span_of(*there, operation.at_target.count));
  if (target == nullptr || !may_access(window, operation.target, bytes, error)) return false;
  if (error != MPI_SUCCESS) return true;
  window.pending.store(true, std::memory_order_relaxed);
  const Runs at_target = {target, there};
  const Runs own = {static_cast<std::byte*>(operation.memory), here};
  if (operation.towards == Towards::target) {
    copy_runs(at_target, own, bytes);
  } else {
    copy_runs(own, at_target, bytes);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace perdure
