// SPDX-License-Identifier: BSD-3-Clause
//
// Flush: the processor's instructions that move cached stores to memory. The only place that
// issues them; the best ones are chosen once, at the first call of flush_primitives().
//
//   x86-64   clwb, else clflushopt, else clflush; non-temporal stores of 64 bytes (AVX-512, AVX,
//            else SSE2); sfence
//   aarch64  dc cvap (ARMv8.2 DCPOP), else dc cvac; stnp; dsb ish
//
// Threads: the functions are pure apart from their effect on the caches.
#pragma once

#include <cstddef>

namespace perdure {

constexpr std::size_t cache_line_bytes = 64;

struct FlushPrimitives {
  const char* flush_name;  // "clwb", "clflushopt", "clflush", "dc cvap", "dc cvac"
  const char* copy_name;   // "avx512-nt", "avx-nt", "sse2-nt", "stnp"
  // Writes back every line that [address, address + count) touches; ordered by fence().
  void (*flush)(const void* address, std::size_t count);
  // Copies with non-temporal stores where whole lines are written, and flushes the ragged ends;
  // source and destination do not overlap; ordered by fence().
  void (*copy)(void* destination, const void* source, std::size_t count);
  void (*fence)();
  // The program itself stored to these whole lines with non-temporal stores: they are in memory
  // after fence(). Null on aarch64, where the cache may keep them, as they are hints: then flush().
  void (*stored_past_cache)(const void* address, std::size_t count);
  // Of bytes that are copied and summed: a turn, of which the sum comes first (sum_and_copy()). 0:
  // the copy comes first, and turns are large.
  std::size_t turn_bytes = 0;
};

// The best of this processor. PERDURE_FLUSH=clflush|clflushopt|clwb in the environment forces one
// (if the processor has it), for measurements.
const FlushPrimitives& flush_primitives();

// The given flush instruction, or nullptr when this processor lacks it.
const FlushPrimitives* flush_primitives_named(const char* flush_name);

}  // namespace perdure
