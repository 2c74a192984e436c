// SPDX-License-Identifier: BSD-3-Clause
//
// malloc and its family, in front of the C library's: blocks of a size are tracked by where they
// are allocated. Only `record` looks at them.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ipv_check/process.hpp"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* address);
}

namespace {

using namespace perdure::ipv_check;

constexpr int frames_max = 12;

bool is_tracked(std::size_t bytes) {
  const Process* self = process.load(std::memory_order_acquire);
  return self != nullptr && self->record != nullptr && bytes >= self->options.heap_bytes_min;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// The module a return address lies in; false if it is this library, or none.
bool find_frame(void* address, Frame& frame) {
  Dl_info where;
  link_map* map = nullptr;
  Dl_info own;
  if (::dladdr1(address, &where, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr || ::dladdr(reinterpret_cast<void*>(&find_frame), &own) == 0 ||
      own.dli_fbase == where.dli_fbase) {
    return false;
  }
  frame.module = where.dli_fname;
  frame.offset = number(address) - 1 - map->l_addr;  // within the call, not after it
  return true;
}

std::vector<Frame> frames_of(void** addresses, int count) {
  std::vector<Frame> frames;
  for (int i = 0; i < count; ++i) {
    Frame frame;
    if (find_frame(addresses[i], frame)) frames.push_back(std::move(frame));
  }
  return frames;
}

void note_allocation(const Inside& inside, const void* memory, std::size_t bytes) {
  void* addresses[frames_max];
  const int count = ::backtrace(addresses, frames_max);
  std::uint64_t stack = 0xcbf29ce484222325;  // FNV-1a
  for (int i = 0; i < count; ++i) stack = (stack ^ number(addresses[i])) * 0x100000001b3;
  inside->record->allocated(number(memory), bytes, stack,
                            [&] { return frames_of(addresses, count); });
}

void* noted(void* memory, std::size_t bytes) {
  if (memory == nullptr || !is_tracked(bytes)) return memory;
  const Inside inside;
  if (inside) note_allocation(inside, memory, bytes);
  return memory;
}

void forget(void* memory) {
  if (memory == nullptr) return;
  const std::size_t bytes = ::malloc_usable_size(memory);
  if (!is_tracked(bytes)) return;
  const Inside inside;
  if (inside) inside->record->freed(number(memory), bytes);
}

void* moved(void* old, std::size_t bytes) {
  void* memory = __libc_malloc(bytes);
  if (memory == nullptr) return nullptr;
  const std::size_t count = std::min(bytes, ::malloc_usable_size(old));
  std::memcpy(memory, old, count);
  noted(memory, bytes);
  {
    const Inside inside;
    if (inside) inside->record->moved(number(old), number(memory), count);
  }
  forget(old);
  __libc_free(old);
  return memory;
}

}  // namespace

extern "C" {

PERDURE_API void* malloc(size_t bytes) noexcept {
  return noted(__libc_malloc(bytes), bytes);
}

PERDURE_API void* calloc(size_t count, size_t bytes) noexcept {
  return noted(__libc_calloc(count, bytes), count * bytes);
}

PERDURE_API void* realloc(void* old, size_t bytes) noexcept {
  if (old == nullptr) return malloc(bytes);
  if (bytes == 0 || (!is_tracked(bytes) && !is_tracked(::malloc_usable_size(old)))) {
    if (bytes == 0) forget(old);
    return __libc_realloc(old, bytes);
  }
  return moved(old, bytes);
}

PERDURE_API void free(void* memory) noexcept {
  forget(memory);
  __libc_free(memory);
}

PERDURE_API void* memalign(size_t alignment, size_t bytes) noexcept {
  return noted(__libc_memalign(alignment, bytes), bytes);
}

PERDURE_API void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return noted(__libc_memalign(alignment, bytes), bytes);
}

PERDURE_API int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* made = __libc_memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *memory = noted(made, bytes);
  return 0;
}

}  // extern "C"
