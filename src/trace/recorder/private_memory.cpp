// SPDX-License-Identifier: BSD-3-Clause
#include "trace/recorder/private_memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace perdure::trace {
namespace {

constexpr std::size_t reserved_bytes = std::size_t{64} << 30U;
constexpr std::uintptr_t wanted_place = std::uintptr_t{1} << 44U;  // where nothing else goes
constexpr unsigned smallest = 5;                                   // of blocks: 2^5 bytes
constexpr unsigned from_malloc = 64;
constexpr std::size_t given_back_bytes = std::size_t{1} << 20U;  // blocks as large are not kept
constexpr std::size_t page_bytes = 4096;

// In front of what is handed out.
struct alignas(16) Block {
  unsigned shift;  // its size is 2^shift, with this; or from_malloc
  Block* next;     // of those that are free
};
static_assert(sizeof(Block) == 16);

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Block* free_blocks[64];
std::byte* next_byte = nullptr;
std::size_t bytes_left = 0;
bool is_reserved = false;

void reserve() {
  is_reserved = true;
  void* place = ::mmap(reinterpret_cast<void*>(wanted_place), reserved_bytes,
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return;
  ::madvise(place, reserved_bytes, MADV_DONTDUMP);
  next_byte = static_cast<std::byte*>(place);
  bytes_left = reserved_bytes;
}

Block* take_block(unsigned shift) {
  if (Block* block = free_blocks[shift]; block != nullptr) {
    free_blocks[shift] = block->next;
    return block;
  }
  if (!is_reserved) reserve();
  const std::size_t bytes = std::size_t{1} << shift;
  if (bytes > bytes_left) return nullptr;
  auto* block = reinterpret_cast<Block*>(next_byte);
  next_byte += bytes;
  bytes_left -= bytes;
  return block;
}

void* allocate(std::size_t bytes) {
  if (bytes > reserved_bytes) return nullptr;
  auto shift = static_cast<unsigned>(std::bit_width(bytes + sizeof(Block) - 1));
  if (shift < smallest) shift = smallest;
  ::pthread_mutex_lock(&mutex);
  Block* block = take_block(shift);
  ::pthread_mutex_unlock(&mutex);
  if (block == nullptr) {
    block = static_cast<Block*>(std::malloc(bytes + sizeof(Block)));
    shift = from_malloc;
  }
  if (block == nullptr) return nullptr;
  block->shift = shift;
  return block + 1;
}

void give_back(void* place) {
  if (place == nullptr) return;
  Block* block = static_cast<Block*>(place) - 1;
  if (block->shift == from_malloc) {
    std::free(block);
    return;
  }
  const std::size_t bytes = std::size_t{1} << block->shift;
  if (bytes >= given_back_bytes) {
    const auto begin = (reinterpret_cast<std::uintptr_t>(block + 1) + page_bytes - 1) / page_bytes;
    const auto end = (reinterpret_cast<std::uintptr_t>(block) + bytes) / page_bytes;
    ::madvise(reinterpret_cast<void*>(begin * page_bytes), (end - begin) * page_bytes,
              MADV_DONTNEED);
  }
  ::pthread_mutex_lock(&mutex);
  block->next = free_blocks[block->shift];
  free_blocks[block->shift] = block;
  ::pthread_mutex_unlock(&mutex);
}

void* allocate_or_throw(std::size_t bytes) {
  void* place = allocate(bytes);
  if (place == nullptr) throw std::bad_alloc();
  return place;
}

}  // namespace

void lock_private_memory() {
  ::pthread_mutex_lock(&mutex);
}
void unlock_private_memory() {
  ::pthread_mutex_unlock(&mutex);
}

}  // namespace perdure::trace

// Of this library alone: exports.map keeps them in it.
void* operator new(std::size_t bytes) {
  return perdure::trace::allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
  return perdure::trace::allocate_or_throw(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return perdure::trace::allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return perdure::trace::allocate(bytes);
}
void operator delete(void* place) noexcept {
  perdure::trace::give_back(place);
}
void operator delete[](void* place) noexcept {
  perdure::trace::give_back(place);
}
void operator delete(void* place, std::size_t) noexcept {
  perdure::trace::give_back(place);
}
void operator delete[](void* place, std::size_t) noexcept {
  perdure::trace::give_back(place);
}
void operator delete(void* place, const std::nothrow_t&) noexcept {
  perdure::trace::give_back(place);
}
void operator delete[](void* place, const std::nothrow_t&) noexcept {
  perdure::trace::give_back(place);
}
