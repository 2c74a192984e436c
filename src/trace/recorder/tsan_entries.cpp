// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that `-fsanitize=thread` makes a compiler call for each access of memory, made to
// record a trace instead of looking for races. GCC and Clang agree on their names; what they are
// called for is described in LLVM's and GCC's ThreadSanitizer passes. Not a race detector: nothing
// else of that library is here.
//
// Threads: all. Failure: none.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "perdure/perdure.h"
#include "perdure/perdure_trace_abi.h"

namespace {

std::uint64_t number(const volatile void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

// The test for a hit of perdure_trace_abi.h.
template <bool is_write>
inline void access(const volatile void* place, std::uint64_t bytes) {
  const std::uint64_t address = number(place);
  const struct perdure_trace_ways& cache = perdure_trace_ways;
  std::uint64_t* const entries = cache.entries[is_write ? 1 : 0];
  if (entries != nullptr && (((address + bytes - 1) ^ address) >> PERDURE_TRACE_LINE_SHIFT) == 0)
      [[likely]] {
    const std::uint64_t set_mask = cache.byte_mask / sizeof *entries;
    std::uint64_t* const entry = entries + (address >> PERDURE_TRACE_LINE_SHIFT & set_mask);
    if ((*entry ^ address) <= cache.slack) [[likely]]
      return;
    if (is_write) {
      perdure_trace_write_miss(entry, address);
    } else {
      perdure_trace_read_miss(entry, address);
    }
    return;
  }
  if (is_write) {
    perdure_trace_write(address, bytes);
  } else {
    perdure_trace_read(address, bytes);
  }
}

void read_and_write(const volatile void* place, std::uint64_t bytes) {
  access<false>(place, bytes);
  access<true>(place, bytes);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses)
#define PERDURE_TSAN_PLACE(name, bytes, record)    \
  PERDURE_API void __tsan_##name##bytes(void* p) { \
    record(p, bytes);                              \
  }
#define PERDURE_TSAN_ACCESS(bytes)                                  \
  PERDURE_TSAN_PLACE(read, bytes, access<false>)                    \
  PERDURE_TSAN_PLACE(write, bytes, access<true>)                    \
  PERDURE_TSAN_PLACE(unaligned_read, bytes, access<false>)          \
  PERDURE_TSAN_PLACE(unaligned_write, bytes, access<true>)          \
  PERDURE_TSAN_PLACE(volatile_read, bytes, access<false>)           \
  PERDURE_TSAN_PLACE(volatile_write, bytes, access<true>)           \
  PERDURE_TSAN_PLACE(unaligned_volatile_read, bytes, access<false>) \
  PERDURE_TSAN_PLACE(unaligned_volatile_write, bytes, access<true>) \
  PERDURE_TSAN_PLACE(read_write, bytes, read_and_write)             \
  PERDURE_TSAN_PLACE(unaligned_read_write, bytes, read_and_write)

// The operation itself is done here as well, as the compiler leaves it to this library. All are
// sequentially consistent, which is at least what was asked for.
#define PERDURE_TSAN_EXCHANGE(bits, type, name, operation)                           \
  PERDURE_API type __tsan_atomic##bits##_##name(volatile type* p, type value, int) { \
    read_and_write(p, sizeof(type));                                                 \
    return operation(p, value, __ATOMIC_SEQ_CST);                                    \
  }
#define PERDURE_TSAN_COMPARE(bits, type, name)                                                    \
  PERDURE_API int __tsan_atomic##bits##_##name(volatile type* p, type* expected, type value, int, \
                                               int) {                                             \
    read_and_write(p, sizeof(type));                                                              \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                         \
  }
#define PERDURE_TSAN_ATOMIC(bits, type)                                                          \
  PERDURE_API type __tsan_atomic##bits##_load(const volatile type* p, int) {                     \
    access<false>(p, sizeof(type));                                                              \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                              \
  PERDURE_API void __tsan_atomic##bits##_store(volatile type* p, type value, int) {              \
    access<true>(p, sizeof(type));                                                               \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                              \
  PERDURE_TSAN_EXCHANGE(bits, type, exchange, __atomic_exchange_n)                               \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_add, __atomic_fetch_add)                               \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_sub, __atomic_fetch_sub)                               \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_and, __atomic_fetch_and)                               \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_or, __atomic_fetch_or)                                 \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_xor, __atomic_fetch_xor)                               \
  PERDURE_TSAN_EXCHANGE(bits, type, fetch_nand, __atomic_fetch_nand)                             \
  PERDURE_TSAN_COMPARE(bits, type, compare_exchange_strong)                                      \
  PERDURE_TSAN_COMPARE(bits, type, compare_exchange_weak)                                        \
  PERDURE_API type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected,   \
                                                              type value, int, int) {            \
    read_and_write(p, sizeof(type));                                                             \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return expected;                                                                             \
  }

extern "C" {

PERDURE_TSAN_ACCESS(1)
PERDURE_TSAN_ACCESS(2)
PERDURE_TSAN_ACCESS(4)
PERDURE_TSAN_ACCESS(8)
PERDURE_TSAN_ACCESS(16)

// Too early: GCC calls it before the C library has its environment.
PERDURE_API void __tsan_init() {}
PERDURE_API void __tsan_func_entry(void*) {}
PERDURE_API void __tsan_func_exit() {}
PERDURE_API void __tsan_vptr_read(void** p) {
  access<false>(p, sizeof *p);
}
PERDURE_API void __tsan_vptr_update(void** p, void*) {
  access<true>(p, sizeof *p);
}
PERDURE_API void __tsan_ignore_thread_begin() {}
PERDURE_API void __tsan_ignore_thread_end() {}
PERDURE_API void __tsan_read_range(void* p, unsigned long bytes) {
  perdure_trace_read(number(p), bytes);
}
PERDURE_API void __tsan_write_range(void* p, unsigned long bytes) {
  perdure_trace_write(number(p), bytes);
}

PERDURE_API void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  perdure_trace_copy(number(to), number(from), bytes);
  return std::memcpy(to, from, bytes);
}
PERDURE_API void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  perdure_trace_copy(number(to), number(from), bytes);
  return std::memmove(to, from, bytes);
}
PERDURE_API void* __tsan_memset(void* to, int value, std::size_t bytes) {
  perdure_trace_write(number(to), bytes);
  return std::memset(to, value, bytes);
}

// Calls of GCC's code come here by the linker's --wrap.
PERDURE_API void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  return __tsan_memcpy(to, from, bytes);
}
PERDURE_API void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  return __tsan_memmove(to, from, bytes);
}
PERDURE_API void* __wrap_memset(void* to, int value, std::size_t bytes) {
  return __tsan_memset(to, value, bytes);
}

PERDURE_TSAN_ATOMIC(8, std::uint8_t)
PERDURE_TSAN_ATOMIC(16, std::uint16_t)
PERDURE_TSAN_ATOMIC(32, std::uint32_t)
PERDURE_TSAN_ATOMIC(64, std::uint64_t)
PERDURE_API void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
PERDURE_API void __tsan_atomic_signal_fence(int) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)
