// SPDX-License-Identifier: BSD-3-Clause
//
// Redirected calls: what libperdure calls instead of memcpy(), mmap(), munmap() and the flush
// primitives in a program NAME_misses (ld's --wrap): each informs the cache model, and does the
// same.
//
// A copy past the caches reads its source through them, and its destination leaves them. No
// templates of the C++ library here: the program's, which are instrumented, would be taken for
// them.
#include <sys/mman.h>

#include <cstdint>
#include <span>

#include "cache_model.h"
#include "pmem/flush.hpp"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are those of ld
// perdure::native_flush_primitives()
extern "C" std::span<const perdure::FlushPrimitives>
__real__ZN7perdure23native_flush_primitivesEv();
extern "C" std::span<const perdure::FlushPrimitives>
__wrap__ZN7perdure23native_flush_primitivesEv();

namespace perdure {
namespace {

constexpr std::size_t primitives_max = 3;  // clwb, clflushopt, clflush
FlushPrimitives real[primitives_max];
FlushPrimitives watched[primitives_max];
thread_local bool copying_past = false;

template <std::size_t which>
void flush(const void* address, std::size_t count) {
  perdure_cache_model_flushed(address, count);
  real[which].flush(address, count);
}

template <std::size_t which>
void copy(void* to, const void* from, std::size_t count) {
  perdure_cache_model_read(from, count);
  perdure_cache_model_stored_past(to, count);
  copying_past = true;  // the ragged ends are copied by memcpy()
  real[which].copy(to, from, count);
  copying_past = false;
}

// The stores themselves are not instrumented (past_cache.hpp).
void stored_past(const void* address, std::size_t count) {
  perdure_cache_model_stored_past(address, count);
}

constexpr FlushPrimitives informing[primitives_max] = {
    {nullptr, nullptr, flush<0>, copy<0>, nullptr, stored_past},
    {nullptr, nullptr, flush<1>, copy<1>, nullptr, stored_past},
    {nullptr, nullptr, flush<2>, copy<2>, nullptr, stored_past}};

std::size_t watch_all() {
  std::size_t count = 0;
  for (const FlushPrimitives& primitives : __real__ZN7perdure23native_flush_primitivesEv()) {
    if (count == primitives_max) break;
    real[count] = primitives;
    watched[count] = primitives;
    watched[count].flush = informing[count].flush;
    watched[count].copy = informing[count].copy;
    if (real[count].stored_past_cache != nullptr) {
      watched[count].stored_past_cache = informing[count].stored_past_cache;
    }
    ++count;
  }
  return count;
}

}  // namespace

}  // namespace perdure

extern "C" {

std::span<const perdure::FlushPrimitives> __wrap__ZN7perdure23native_flush_primitivesEv() {
  static const std::size_t count = perdure::watch_all();
  return {perdure::watched, count};
}

void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  if (!perdure::copying_past) perdure_cache_model_copied(to, from, bytes);
  return __real_memcpy(to, from, bytes);
}

void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                  off_t offset) {
  void* const place = __real_mmap(address, bytes, protection, flags, fd, offset);
  if (place != MAP_FAILED) {
    perdure_cache_model_mapped(place, bytes, flags, fd, static_cast<std::uint64_t>(offset));
  }
  return place;
}

int __real_munmap(void* address, std::size_t bytes);
int __wrap_munmap(void* address, std::size_t bytes);
int __wrap_munmap(void* address, std::size_t bytes) {
  perdure_cache_model_unmapped(address, bytes);
  return __real_munmap(address, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
