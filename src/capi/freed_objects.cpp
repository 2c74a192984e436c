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
#include <utility>

#include "base/loaded_code.hpp"
#include "freed_buffers.hpp"

namespace perdure {
namespace {

std::mutex leading_mutex;    // of these three
unsigned led_for = 0;        // bits of FreedMemory, for which calls lead here
std::uint64_t led_when = 0;  // so many libraries had been loaded
// What is below, except for the bounds. Shared, as a thread that ends an object waits for one that
// commits, which frees memory of its own.
std::shared_mutex objects_mutex;
ObjectList* watched = nullptr;
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

bool may_free(void* block, Going how = Going::freed) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  if (block == nullptr || is_above_all(begin)) return true;
  return FreedObjects::may_go(begin, begin + original.usable(block), how);
}

bool may_reallocate(void* block, std::size_t bytes) {
  return may_free(block, bytes == 0 ? Going::freed : Going::moved);
}

struct Block {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
// Of the allocator, if it may hold buffers of arrays; else nothing.
Block with_buffers(void* block) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  if (block == nullptr || !FreedBuffers::may_hold(begin, ~std::uintptr_t{0})) return {};
  const std::uintptr_t end = begin + original.usable(block);
  return FreedBuffers::may_hold(begin, end) ? Block{begin, end} : Block{};
}

void free_block(void* block) {
  const Block held = with_buffers(block);
  if (held.end != 0) FreedBuffers::go(held.begin, held.end, "freed");
  if (may_free(block)) original.free(block);
}

void* realloc_object(void* block, std::size_t bytes) {
  return may_reallocate(block, bytes) ? original.realloc(block, bytes) : nullptr;
}

void* realloc_block(void* block, std::size_t bytes) {
  const Block held = with_buffers(block);
  if (held.end == 0) return realloc_object(block, bytes);
  FreedBuffers::begin_move(held.begin, held.end);
  void* const now = realloc_object(block, bytes);
  std::uintptr_t kept_end = held.begin;
  if (now == nullptr && bytes != 0) kept_end = held.end;  // nothing was done
  if (now == block && now != nullptr) kept_end = held.begin + bytes;
  FreedBuffers::end_move(held.begin, held.end, kept_end);
  return now;
}

void* reallocarray_block(void* block, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc_block(block, all);
  return original.reallocarray(block, count, bytes);  // refuses, and leaves the block
}

int munmap_range(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (!is_above_all(begin) && begin + bytes >= begin &&
      !FreedObjects::may_go(begin, begin + bytes)) {
    return 0;
  }
  if (begin + bytes >= begin && FreedBuffers::may_hold(begin, begin + bytes)) {
    FreedBuffers::go(begin, begin + bytes, "unmapped");
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

bool FreedObjects::may_go(std::uintptr_t begin, std::uintptr_t end, Going how) {
  if (end <= low.load(std::memory_order_relaxed)) return true;
  const std::shared_lock<std::shared_mutex> lock(objects_mutex);
  if (watched == nullptr) return true;
  if (watching != ::getpid()) return !watched->reaches_into(begin, end);
  const Status ended = watched->end_within(begin, end, how);
  if (!ended.ok()) std::fprintf(stderr, "perdure: not freed: %s\n", ended.message().c_str());
  return ended.ok();
}

void FreedObjects::watch(ObjectList& objects, bool lead) {
  {
    const std::lock_guard<std::shared_mutex> lock(objects_mutex);
    const ObjectList::Bounds bounds = objects.bounds();
    if (bounds.low == bounds.high && watched == nullptr) return;
    watched = &objects;
    watching = ::getpid();
    low.store(bounds.low, std::memory_order_relaxed);
    high.store(bounds.high, std::memory_order_relaxed);
  }
  if (lead) lead_freeing_calls(FreedMemory::objects);  // which may free memory of its own
}

void FreedObjects::stop() {
  const std::lock_guard<std::shared_mutex> lock(objects_mutex);
  if (watched == nullptr) return;
  low = high = 0;
  stop_leading_freeing_calls(FreedMemory::objects);
  watched = nullptr;
}

void lead_freeing_calls(FreedMemory memory) {
  const std::lock_guard<std::mutex> lock(leading_mutex);
  const std::uint64_t loaded = libraries_loaded();
  if (led_for != 0 && led_when == loaded) {
    led_for |= static_cast<unsigned>(memory);
    return;
  }
  original.usable = reinterpret_cast<std::size_t (*)(void*)>(function_named("malloc_usable_size"));
  if (original.usable == nullptr) return;
  led_for |= static_cast<unsigned>(memory);
  led_when = loaded;
  for (const Lead& call : leads) {
    if (*call.original == nullptr) *call.original = function_named(call.name);
    (void)lead_calls(call.name, *call.original, call.ours);
  }
}

void stop_leading_freeing_calls(FreedMemory memory) {
  const std::lock_guard<std::mutex> lock(leading_mutex);
  const unsigned before = std::exchange(led_for, led_for & ~static_cast<unsigned>(memory));
  if (before == 0 || led_for != 0) return;
  for (const Lead& call : leads) (void)lead_calls(call.name, call.ours, *call.original);
}

}  // namespace perdure
