// SPDX-License-Identifier: BSD-3-Clause
//
// What instrumented code calls at each access (perdure_trace_abi.h, which is not included: it does
// not say that these four preserve the general registers on x86-64). By Clang, as GCC has no such
// functions.
#include <cstdint>

#include "cache_model.h"

#if defined(__x86_64__)
#define PERDURE_PRESERVES __attribute__((preserve_most))
#else
#define PERDURE_PRESERVES
#endif

extern "C" {

PERDURE_PRESERVES void perdure_trace_read(std::uint64_t address, std::uint64_t bytes) {
  perdure_cache_model_loaded(address, bytes);
}

PERDURE_PRESERVES void perdure_trace_write(std::uint64_t address, std::uint64_t bytes) {
  perdure_cache_model_stored(address, bytes);
}

// In one line; the entry that was looked at says nothing here.
PERDURE_PRESERVES void perdure_trace_read_miss(std::uint64_t* /*entry*/, std::uint64_t address) {
  perdure_cache_model_loaded(address, 1);
}

PERDURE_PRESERVES void perdure_trace_write_miss(std::uint64_t* /*entry*/, std::uint64_t address) {
  perdure_cache_model_stored(address, 1);
}

}  // extern "C"
