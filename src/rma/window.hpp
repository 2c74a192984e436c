// SPDX-License-Identifier: BSD-3-Clause
//
// Window: what Perdure knows of one persistent MPI window, or of one half of a twin window.
//
// The user's handle is a real window of the MPI library. In modes copy and log its memory is the
// MPI library's or the user's, and calls pass unchanged. In modes twin and flush its memory is
// the pool's (exposure.hpp): the real window spans all copies of the array and counts bytes, and
// displacements are translated here, the only place that does.
//
// Threads: operations() may be called from any; everything else is called by the collective calls
// of the window.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "mpi/handle_table.hpp"
#include "pool/versioned_array.hpp"
#include "rma/exposure.hpp"
#include "rma/post_board.hpp"
#include "rma/target_locks.hpp"
#include "rma/window_options.hpp"

namespace perdure {

class WindowPool;

// What ranks of a node tell each other of a window, in memory that they share.
struct WindowBoards {
  std::unique_ptr<PostBoard> posts;           // null: no copies after MPI_Win_start
  std::unique_ptr<TargetLocks> target_locks;  // null: accumulates are MPI's
};

enum class WindowFlavor : std::uint8_t { create, allocate, shared, dynamic };

struct Window {
  MPI_Win handle{};
  WindowOptions options;
  WindowFlavor flavor = WindowFlavor::create;
  WindowPool* pool = nullptr;
  VersionedArray* array = nullptr;                       // null: dynamic
  std::multimap<const void*, VersionedArray*> attached;  // regions of a dynamic window, by address
  bool detached_held = false;                            // a version has one that was detached
  std::uint32_t last_part = 0;                           // the highest number of one so far
  bool plain_regions = false;  // one stays plain (plain_window.hpp), and so will all after it

  // Modes twin and flush. A half's exposure spans one copy, the window's own all of them.
  alignas(64) Exposure exposure;  // what every operation looks at is in one cache line
  Window* whole = nullptr;        // of a half: the window that it belongs to
  // Operations of this rank since the calls that complete them.
  std::atomic<bool> pending{false};
  std::atomic<bool> fenced{false};  // a fence has begun the newest epoch
  std::atomic<int> locks{0};        // open passive-target epochs; lock_all is one

  std::vector<std::unique_ptr<Window>> halves;  // twin: one for each copy of the array

  // What MPI_Win_get_attr points at.
  MPI_Aint size_bytes = 0;
  int disp_unit = 1;
  int create_flavor = 0;

  // Of each target in its passive-target epoch: see direct_access.cpp. 0 from before its end on.
  std::vector<std::atomic<std::uint32_t>> lock_uses;
  WindowBoards boards;
  std::array<std::uint64_t, trigger_count> reached{};  // how often each call was made

  bool in_pool() const { return exposure.made; }
  // The copy of the array that operations and MPI_WIN_BASE mean.
  std::uint32_t copy() const { return array == nullptr ? 0 : array->working_copy(); }
  std::byte* base() const { return exposure.address(exposure.rank, current_copy()); }

  // The same of a rank of the node; null: it is elsewhere, or has no memory.
  std::byte* address(std::uint32_t target) const {
    return exposure.address(target, current_copy());
  }

  // Notes an operation on `target` and says where in the real window `displacement` is. A window
  // that is not exposed has no targets; neither has MPI_PROC_NULL.
  MPI_Aint operation(int target, MPI_Aint displacement) {
    pending.store(true, std::memory_order_relaxed);
    if (static_cast<std::size_t>(target) >= exposure.targets.size()) return displacement;
    return exposure.translate(static_cast<std::size_t>(target), displacement, current_copy());
  }

 private:
  std::uint32_t current_copy() const { return whole == nullptr ? copy() : 0; }
};

// The persistent windows of this process.
constexpr std::size_t window_slots = 1 << 18;  // half of them can be in use
extern HandleTable<MPI_Win, Window, window_slots> window_table;

// The persistent window of a handle; null: not ours. Lock-free.
inline Window* find_window(MPI_Win handle) {
  return window_table.find(handle);
}

}  // namespace perdure
