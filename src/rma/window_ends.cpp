// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_ends.hpp"

#include <cstdio>
#include <mutex>
#include <vector>

#include "base/fork_guard.hpp"
#include "base/process_end.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/window_calls.hpp"
#include "rma/window_pool.hpp"

namespace perdure {
namespace {

// In the order in which they were made.
struct LivingWindows {
  std::mutex mutex;
  std::vector<Window*> in_order;
};

LivingWindows& living() {
  static LivingWindows& windows = *new LivingWindows;  // they end after all destructors
  return windows;
}

// base.E4.
const ForkGuard& opener_of_windows() {
  static const ForkGuard guard;
  return guard;
}

// Collective over the window's pool. Other ranks may be in another call of it.
bool may_be_freed(Window& window) {
  const auto quiet = window.pool->agree_to_end(window);
  if (quiet.status().code() == Code::invalid_argument) {
    std::fprintf(stderr, "perdure: window '%s' stays as it is: %s\n", window.options.name.c_str(),
                 quiet.status().message().c_str());
  }
  return quiet.ok() && quiet.value();
}

bool none_to_end() {
  return false;
}

void end_windows(ProcessEnd end) {
  if (end != ProcessEnd::finalize || opener_of_windows().in_child()) return;
  std::vector<Window*> windows;
  {
    const std::lock_guard<std::mutex> lock(living().mutex);
    windows = living().in_order;
  }
  for (Window* window : windows) {
    if (!may_be_freed(*window)) continue;
    window->options.delete_at_free = false;
    MPI_Win handle = window->handle;
    PMPI_Win_set_errhandler(handle, errors_return());
    (void)win_free(&handle);
  }
}

}  // namespace

void note_made(Window& window) {
  static constexpr EndOfKind how{none_to_end, end_windows};
  (void)opener_of_windows();
  end_with_process(OpenKind::windows, how);
  const std::lock_guard<std::mutex> lock(living().mutex);
  living().in_order.push_back(&window);
}

void note_freed(const Window& window) {
  const std::lock_guard<std::mutex> lock(living().mutex);
  std::erase(living().in_order, &window);
}

}  // namespace perdure
