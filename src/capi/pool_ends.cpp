// SPDX-License-Identifier: BSD-3-Clause
#include "pool_ends.hpp"

#include <chrono>
#include <mutex>
#include <vector>

#include "base/process_end.hpp"
#include "levels/levels.hpp"
#include "pool_handle.hpp"

namespace perdure {
namespace {

constexpr std::chrono::milliseconds drain_patience{30'000};

// In the order in which they were opened, which is the same on all ranks.
struct OpenHandles {
  std::mutex mutex;
  std::vector<perdure_pool*> in_order;
};

OpenHandles& handles() {
  static OpenHandles& open = *new OpenHandles;  // they end after all destructors
  return open;
}

// base.E4. One that a thread is in a call on is left as it is.
std::vector<perdure_pool*> to_end() {
  OpenHandles& open = handles();
  const std::lock_guard<std::mutex> lock(open.mutex);
  std::vector<perdure_pool*> found;
  for (perdure_pool* pool : open.in_order) {
    if (!pool->fork.in_child() && !pool->in_call) found.push_back(pool);
  }
  return found;
}

bool any_open() {
  for (const perdure_pool* pool : to_end()) {
    if (pool->levels) return true;
  }
  return false;
}

void end_pools(ProcessEnd end) {
  for (perdure_pool* pool : to_end()) {
    if (end == ProcessEnd::exit) {
      if (pool->levels) pool->levels->end_alone(drain_patience);
    } else if (pool->group->ends_with_mpi()) {
      quiesce(pool);
      if (pool->levels) pool->levels->close();
      pool->pool->run_page().end();
    }
  }
}

}  // namespace

void note_opened(perdure_pool& pool) {
  static constexpr EndOfKind how{any_open, end_pools};
  end_with_process(OpenKind::pools, how);
  OpenHandles& open = handles();
  const std::lock_guard<std::mutex> lock(open.mutex);
  open.in_order.push_back(&pool);
}

void note_closed(const perdure_pool& pool) {
  OpenHandles& open = handles();
  const std::lock_guard<std::mutex> lock(open.mutex);
  std::erase(open.in_order, &pool);
}

}  // namespace perdure
