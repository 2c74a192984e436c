// SPDX-License-Identifier: BSD-3-Clause
#include <libpmem.h>

#include "persist.hpp"

namespace perdure::bench {
namespace {

void copy(void* destination, const void* source, std::size_t count) {
  pmem_memcpy_nodrain(destination, source, count);
}

}  // namespace

Verbs libpmem_verbs() {
  return {copy, pmem_flush, pmem_drain};
}

}  // namespace perdure::bench
