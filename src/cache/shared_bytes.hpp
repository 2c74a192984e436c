// SPDX-License-Identifier: BSD-3-Clause
//
// Shared bytes: those of a part's blocks, which may be stored to while somebody else reads them.
//
// Two kinds of readers may meet a store half done, because they notice it: write-back, which clears
// a grain's dirty bits before it reads, and hands the grain over again if they are set afterwards
// (cache.P4); and readers of a version's bytes, which look afterwards whether these were kept
// before they were changed (cache.P13). Bytes must then not be read early, which the words around
// them see to, nor read twice or invented, which no memcpy does with memory that other threads
// have. C++ asks for more, an atomic for each byte, which no compiler turns into a memcpy. So
// builds for ThreadSanitizer have these atomics, and others a memcpy: it reports a wrong order of
// words and bytes, and no race where there is none.
//
// Threads: any. Failure: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace perdure {

#ifdef __SANITIZE_THREAD__

inline void copy_to_shared(std::byte* to, const void* from, std::size_t bytes) {
  const auto* place = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < bytes; ++i) {
    std::atomic_ref<std::byte>(to[i]).store(place[i], std::memory_order_release);
  }
}

inline void copy_from_shared(void* to, const std::byte* from, std::size_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < bytes; ++i) {
    place[i] =
        std::atomic_ref<std::byte>(const_cast<std::byte&>(from[i])).load(std::memory_order_acquire);
  }
}

// Here by the loads and stores above, as it sees no fences.
inline void load_later_than_shared() {}
inline void store_later_to_shared() {}

// What system calls are given to read, as long as this exists; that is no access of the program's.
class SharedForCalls {
 public:
  const std::byte* add(const std::byte* from, std::size_t bytes) {
    copies_.emplace_back(bytes);
    copy_from_shared(copies_.back().data(), from, bytes);
    return copies_.back().data();
  }

 private:
  std::vector<std::vector<std::byte>> copies_;
};

#else

inline void copy_to_shared(std::byte* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

inline void copy_from_shared(void* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

// What is loaded afterwards is loaded later.
inline void load_later_than_shared() {
  std::atomic_thread_fence(std::memory_order_acquire);
}

// What was stored before is stored earlier. A release store alone lets later ones come before it.
inline void store_later_to_shared() {
  std::atomic_thread_fence(std::memory_order_release);
}

class SharedForCalls {
 public:
  const std::byte* add(const std::byte* from, std::size_t) { return from; }
};

#endif

}  // namespace perdure
