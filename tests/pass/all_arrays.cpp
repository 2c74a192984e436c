// SPDX-License-Identifier: BSD-3-Clause
//
// For programs with the markers of apps/npb/region.hpp, over poison_runtime.cpp: each block of at
// least 4 KiB from malloc() or aligned_alloc() that lives when the iterations begin is an object,
// and there is a persistence point before each iteration. Linked with
// -Wl,--wrap=malloc,--wrap=aligned_alloc,
// --wrap=free.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "perdure/perdure_ipv.h"

extern "C" {

void* __real_malloc(size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void* address);

namespace {

enum class Phase { setup, iterations, ended };
constexpr size_t block_bytes_min = 4096;
Phase phase = Phase::setup;

// Its own nodes are too small to be counted, and come from operator new besides.
std::map<void*, size_t>& blocks() {
  static auto* map = new std::map<void*, size_t>;
  return *map;
}

void* noted(void* address, size_t bytes) {
  if (address != nullptr && bytes >= block_bytes_min && phase == Phase::setup) {
    blocks()[address] = bytes;
  }
  return address;
}

}  // namespace

void* __wrap_malloc(size_t bytes) {
  return noted(__real_malloc(bytes), bytes);
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return noted(__real_aligned_alloc(alignment, bytes), bytes);
}

void __wrap_free(void* address) {
  const bool known = blocks().erase(address) != 0;
  if (known && phase == Phase::iterations) {
    std::fputs("all_arrays: an object is freed in the iterations\n", stderr);
    std::abort();
  }
  __real_free(address);
}

void perdure_trace_begin(const char*) {
  for (const auto& [address, bytes] : blocks()) {
    perdure_ipv_object("block", address, bytes, nullptr);
  }
  phase = Phase::iterations;
}

void perdure_trace_iteration(uint64_t) {
  perdure_ipv_persist(nullptr);
}

void perdure_trace_end() {
  perdure_ipv_persist(nullptr);
  phase = Phase::ended;
  perdure_ipv_close();
}

}  // extern "C"
