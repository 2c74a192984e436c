// SPDX-License-Identifier: BSD-3-Clause
//
// Freed objects: while it is watched, the program's own free(), realloc(), reallocarray() and
// munmap() of memory that holds an object end that object first (InPlaceObject::end()).
//
// The calls are led here in the linkage tables (base/loaded_code.hpp), so that programs without
// objects pay nothing. Two comparisons tell that a block ends below all objects or begins above
// them. Threads: free() and the like from any; watch() and stop() from one at a time.
#pragma once

#include "ipv/object_set.hpp"

namespace perdure {

class FreedObjects {
 public:
  // Until stop(), which waits for calls that are under way. `set` is started and outlives that.
  static void watch(ObjectSet& set);
  static void stop();
};

}  // namespace perdure
