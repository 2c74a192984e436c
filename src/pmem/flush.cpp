// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/flush.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/environment.hpp"
#include "pmem/flush_native.hpp"

namespace perdure {
namespace {

const FlushPrimitives& choose() {
  const FlushPrimitives& best = native_flush_primitives().front();
  const std::string wanted = environment("PERDURE_FLUSH");
  if (wanted.empty()) return best;
  if (const FlushPrimitives* forced = flush_primitives_named(wanted.c_str())) return *forced;
  // A wrong instruction would be a crash, a silent other one a wrong measurement: hence the line.
  std::fprintf(stderr, "perdure: PERDURE_FLUSH=%s is not of this processor; %s is used\n",
               wanted.c_str(), best.flush_name);
  return best;
}

}  // namespace

const FlushPrimitives& flush_primitives() {
  static const FlushPrimitives& chosen = choose();
  return chosen;
}

const FlushPrimitives* flush_primitives_named(const char* flush_name) {
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    if (std::strcmp(primitives.flush_name, flush_name) == 0) return &primitives;
  }
  return nullptr;
}

}  // namespace perdure
