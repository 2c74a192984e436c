// SPDX-License-Identifier: BSD-3-Clause
#include "freed_objects.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>

#include "base/loaded_code.hpp"

namespace perdure {
namespace {

// What is below, except for the bounds. Shared, as a thread that ends an object waits for one that
// commits, which frees memory of its own.
std::shared_mutex mutex;
ObjectSet* watched = nullptr;
bool led = false;    // calls lead here
pid_t watching = 0;  // the process; a forked child has no objects to end
std::atomic<std::uintptr_t> low{0};
std::atomic<std::uintptr_t> high{0};

struct Originals {
  void (*free)(void*) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void* (*reallocarray)(void*, std::size_t, std::size_t) = nullptr;
  int (*munmap)(void*, std::size_t) = nullptr;
  std::size_t (*usable)(void*) = nullptr;
};
Originals original;  // from the first watch() on

bool is_above_all(std::uintptr_t begin) {
  return begin >= high.load(std::memory_order_relaxed);
}

bool may_free(void* block) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  if (block == nullptr || is_above_all(begin)) return true;
  return FreedObjects::may_go(begin, begin + original.usable(block));
}

void free_block(void* block) {
  if (may_free(block)) original.free(block);
}

void* realloc_block(void* block, std::size_t bytes) {
  return may_free(block) ? original.realloc(block, bytes) : nullptr;
}

void* reallocarray_block(void* block, std::size_t count, std::size_t bytes) {
  return may_free(block) ? original.reallocarray(block, count, bytes) : nullptr;
}

int munmap_range(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (!is_above_all(begin) && begin + bytes >= begin &&
      !FreedObjects::may_go(begin, begin + bytes)) {
    return 0;
  }
  return original.munmap(address, bytes);
}

struct Lead {
  const char* name;
  void* ours;
  void** original;
};
template <typename F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}
const Lead leads[] = {
    {"free", address_of(free_block), reinterpret_cast<void**>(&original.free)},
    {"realloc", address_of(realloc_block), reinterpret_cast<void**>(&original.realloc)},
    {"reallocarray", address_of(reallocarray_block),
     reinterpret_cast<void**>(&original.reallocarray)},
    {"munmap", address_of(munmap_range), reinterpret_cast<void**>(&original.munmap)}};

}  // namespace

bool FreedObjects::may_go(std::uintptr_t begin, std::uintptr_t end) {
  if (end <= low.load(std::memory_order_relaxed)) return true;
  const std::shared_lock<std::shared_mutex> lock(mutex);
  if (watched == nullptr) return true;
  if (watching != ::getpid()) return !watched->reaches_into(begin, end);
  const Status ended = watched->end_within(begin, end);
  if (!ended.ok()) std::fprintf(stderr, "perdure: not freed: %s\n", ended.message().c_str());
  return ended.ok();
}

void FreedObjects::watch(ObjectSet& set, bool lead) {
  const std::lock_guard<std::shared_mutex> lock(mutex);
  if (set.low() == set.high()) return;
  watched = &set;
  watching = ::getpid();
  low.store(set.low(), std::memory_order_relaxed);
  high.store(set.high(), std::memory_order_relaxed);
  original.usable = reinterpret_cast<std::size_t (*)(void*)>(function_named("malloc_usable_size"));
  led = lead && original.usable != nullptr;
  if (!led) return;
  for (const Lead& call : leads) {
    *call.original = function_named(call.name);
    (void)lead_calls(call.name, *call.original, call.ours);
  }
}

void FreedObjects::stop() {
  const std::lock_guard<std::shared_mutex> lock(mutex);
  if (watched == nullptr) return;
  low = high = 0;
  if (led) {
    for (const Lead& call : leads) (void)lead_calls(call.name, call.ours, *call.original);
  }
  watched = nullptr;
}

}  // namespace perdure
