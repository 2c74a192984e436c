// SPDX-License-Identifier: BSD-3-Clause
//
// Freed objects: while it is watched, memory that holds an object and goes ends that object first
// (InPlaceObject::end()): perdure_ipv_free() asks here, and the program's own free(), realloc(),
// reallocarray() and munmap() are led here.
//
// The latter in the linkage tables (base/loaded_code.hpp), and only if some object may go that way,
// so that other programs pay nothing. Two comparisons tell that a block ends below all objects or
// begins above them. Threads: whoever frees, any; watch() and stop() from one at a time.
#pragma once

#include <cstdint>

#include "ipv/object_list.hpp"

namespace perdure {

class FreedObjects {
 public:
  // Until stop(), which waits for calls that are under way. `objects` are started and outlive that.
  // `lead`: some object's memory is the program's to free. Again when an object lies elsewhere.
  static void watch(ObjectList& objects, bool lead);
  static void stop();
  // Whether [begin, end) may go; its objects have ended then. If not it stays for good, which harms
  // nothing, and stderr says why.
  static bool may_go(std::uintptr_t begin, std::uintptr_t end, Going how = Going::freed);
};

// The calls that free memory lead to freed_objects.cpp, in libraries that were loaded since, too,
// until nobody needs it.
enum class FreedMemory : unsigned { objects = 1, buffers = 2 };
void lead_freeing_calls(FreedMemory memory);
void stop_leading_freeing_calls(FreedMemory memory);

}  // namespace perdure
