// SPDX-License-Identifier: BSD-3-Clause
#include "rma/direct_access.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "mpi/mpi_library.hpp"
#include "rma/mpi_calls.hpp"
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

bool locks_at_once() {
  static const bool at_once = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    PMPI_Get_library_version(text.data(), &length);
    const std::string_view version(text.data());
    return version.starts_with("MPICH") && version.find("\tch4:") != std::string_view::npos;
  }();
  return at_once;
}

int await_lock(Window& window, int target) {
  std::byte byte{};
  const MPI_Aint place = window.operation(target, 0);
  const int error =
      WindowCalls::Get::real(&byte, 1, type_byte(), target, place, 1, type_byte(), window.handle);
  return error == MPI_SUCCESS ? PMPI_Win_flush(target, window.handle) : error;
}

constexpr std::uint32_t small_ones = 8;  // of an epoch, that are not worth the wait
constexpr std::uint32_t held = small_ones;

// In a passive-target epoch: whether the lock is held, or could not be had, with `error`.
bool has_lock(Window& window, int target, std::int64_t bytes, int& error) {
  std::atomic<std::uint32_t>& count = window.lock_uses[static_cast<std::size_t>(target)];
  const std::uint32_t before = count.load(std::memory_order_relaxed);
  if (before == held) return true;
  if (bytes < least_awaited_bytes && before + 1 < small_ones) {
    count.store(before + 1, std::memory_order_relaxed);
    return false;
  }
  error = await_lock(window, target);
  if (error == MPI_SUCCESS) count.store(held, std::memory_order_relaxed);
  return true;
}

}  // namespace

void note_lock(Window& window, std::size_t first, std::size_t count) {
  if (!locks_at_once()) return;
  const std::size_t end = std::min(first + count, window.lock_uses.size());
  for (std::size_t target = first; target < end; ++target) {
    window.lock_uses[target].store(held, std::memory_order_release);
  }
}

std::byte* reachable(const Window& window, int target, MPI_Aint at, const ByteSpan& span) {
  const Exposure& exposure = window.exposure;
  if (static_cast<std::size_t>(target) >= exposure.targets.size()) return nullptr;
  const ExposedTarget& exposed = exposure.targets[static_cast<std::size_t>(target)];
  if (at < 0) return nullptr;
  const auto bytes = static_cast<std::int64_t>(exposed.copy_bytes);
  const auto unit = static_cast<std::int64_t>(exposed.unit_bytes);
  if (at > bytes / unit) return nullptr;
  const std::int64_t byte = at * unit;
  if (!span.valid || byte + span.first < 0 || span.end > bytes - byte) return nullptr;
  std::byte* copy = window.address(static_cast<std::uint32_t>(target));
  return copy == nullptr ? nullptr : copy + byte;
}

bool may_access(Window& window, int target, std::int64_t bytes, int& error) {
  error = MPI_SUCCESS;
  if (window.locks.load(std::memory_order_relaxed) != 0) {
    return has_lock(window, target, bytes, error);
  }
  if (window.fenced.load(std::memory_order_relaxed)) return true;
  return window.boards.posts != nullptr &&
         window.boards.posts->is_posted(static_cast<std::size_t>(target));
}

int show_type(const Window& window, int target, MPI_Datatype type) {
  return WindowCalls::Put::real(nullptr, 0, type, target, 0, 0, type, window.handle);
}

const DatatypeMap* shown_map(const Window& window, int target, MPI_Datatype type, int& error) {
  if (const DatatypeMap* map = known_map(type)) return map;
  if (type == type_null()) return nullptr;
  error = show_type(window, target, type);
  if (error != MPI_SUCCESS) return nullptr;
  const auto found = map_of(type);
  if (found.ok()) return found.value();
  error = raise_on_window(window.handle, found.status());
  return nullptr;
}

}  // namespace perdure
