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

// Null: MPI is to do it. For a small transfer no map is made, unless it is there to stay.
const DatatypeMap* map_if_large(const Side& side) {
  static const MPI_Datatype null = type_null();
  if (const DatatypeMap* map = known_map(side.type)) return map;
  if (side.type == null) return nullptr;
  MPI_Count size = 0;
  std::int64_t bytes = 0;
  PMPI_Type_size_x(side.type, &size);
  const bool overflows = __builtin_mul_overflow(side.count, size, &bytes);
  if (!overflows && bytes < least_awaited_bytes && !is_named(side.type)) return nullptr;
  const auto found = map_of(side.type);
  return found.ok() ? found.value() : nullptr;
}

// Where in this process the operation's memory at the target begins; null: MPI is to do it.
std::byte* reachable(const Window& window, const Operation& operation, const DatatypeMap& map) {
  const Exposure& exposure = window.exposure;
  if (static_cast<std::size_t>(operation.target) >= exposure.targets.size()) return nullptr;
  const ExposedTarget& target = exposure.targets[static_cast<std::size_t>(operation.target)];
  if (operation.at < 0) return nullptr;
  const auto bytes = static_cast<std::int64_t>(target.copy_bytes);
  const auto unit = static_cast<std::int64_t>(target.unit_bytes);
  if (operation.at > bytes / unit) return nullptr;
  const std::int64_t at = operation.at * unit;
  const ByteSpan span = span_of(map, operation.at_target.count);
  if (!span.valid || at + span.first < 0 || span.end > bytes - at) return nullptr;
  std::byte* copy = window.address(static_cast<std::uint32_t>(operation.target));
  return copy == nullptr ? nullptr : copy + at;
}

int await_lock(Window& window, const Operation& operation) {
  std::byte byte{};
  const MPI_Aint place = window.operation(operation.target, 0);
  const int error = WindowCalls::Get::real(&byte, 1, type_byte(), operation.target, place, 1,
                                           type_byte(), window.handle);
  return error == MPI_SUCCESS ? PMPI_Win_flush(operation.target, window.handle) : error;
}

constexpr std::uint32_t small_ones = 8;  // of an epoch, that are not worth the wait
constexpr std::uint32_t held = small_ones;

// In a passive-target epoch: whether the lock is held, or could not be had, with `error`.
bool has_lock(Window& window, const Operation& operation, std::int64_t bytes, int& error) {
  std::atomic<std::uint32_t>& count = window.lock_uses[static_cast<std::size_t>(operation.target)];
  const std::uint32_t before = count.load(std::memory_order_relaxed);
  if (before == held) return true;
  if (bytes < least_awaited_bytes && before + 1 < small_ones) {
    count.store(before + 1, std::memory_order_relaxed);
    return false;
  }
  error = await_lock(window, operation);
  if (error == MPI_SUCCESS) count.store(held, std::memory_order_relaxed);
  return true;
}

// Whether the target's memory may be accessed now.
bool may_access(Window& window, const Operation& operation, std::int64_t bytes, int& error) {
  error = MPI_SUCCESS;
  if (window.locks.load(std::memory_order_relaxed) != 0) {
    return has_lock(window, operation, bytes, error);
  }
  if (window.fenced.load(std::memory_order_relaxed)) return true;
  return window.posts != nullptr &&
         window.posts->is_posted(static_cast<std::size_t>(operation.target));
}

}  // namespace

bool copied_directly(Window& window, const Operation& operation, int& error) {
  const DatatypeMap* there = map_if_large(operation.at_target);
  const DatatypeMap* here = there == nullptr ? nullptr : map_if_large(operation.origin);
  if (here == nullptr) return false;
  if (operation.origin.count < 0 || operation.at_target.count < 0) return false;
  std::int64_t bytes = 0;
  std::int64_t own_bytes = 0;
  if (__builtin_mul_overflow(operation.at_target.count, there->size_bytes, &bytes) ||
      __builtin_mul_overflow(operation.origin.count, here->size_bytes, &own_bytes)) {
    return false;
  }
  if (bytes != own_bytes || bytes == 0) return false;
  std::byte* target = reachable(window, operation, *there);
  if (target == nullptr || !may_access(window, operation, bytes, error)) return false;
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
