// SPDX-License-Identifier: BSD-3-Clause
//
// Freed buffers: the application's buffers of open arrays. An array whose buffer goes, by free(),
// realloc(), munmap() or what calls these, loses it (VersionedArray::lose_buffer()), and its next
// commit fails: what is there then is not the array's.
//
// The calls are led here as they are to objects (freed_objects.hpp), while there is such a buffer:
// programs that give none pay nothing. A block outside of all buffers costs two comparisons more;
// one between them, a lock that is shared and a look into a tree.
//
// Threads: whoever frees, any; watch() and forget() any. A forked child has none of its parent's
// arrays: nothing happens there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "pool/versioned_array.hpp"

namespace perdure {

class FreedBuffers {
 public:
  // Until forget(), which waits for calls that are under way.
  static void watch(VersionedArray& array);
  static void forget(VersionedArray& array);
  // `resize` may give it other memory, or another size; calls are led on all the time, as to begin
  // and end that takes 100 us.
  static Status change(VersionedArray& array, const std::function<Status()>& resize);

  static bool may_hold(std::uintptr_t begin, std::uintptr_t end) {
    return begin < high.load(std::memory_order_relaxed) &&
           end > low.load(std::memory_order_relaxed);
  }
  // [begin, end) goes. `how`: "freed".
  static void go(std::uintptr_t begin, std::uintptr_t end, const char* how);
  // realloc() will be asked about [begin, end); what stayed are the bytes up to `kept_end`.
  static void begin_move(std::uintptr_t begin, std::uintptr_t end);
  static void end_move(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t kept_end);

 private:
  // Whether none is left.
  static bool take_out(VersionedArray& array);

  static std::atomic<std::uintptr_t> low;
  static std::atomic<std::uintptr_t> high;
};

}  // namespace perdure
