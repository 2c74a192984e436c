// SPDX-License-Identifier: BSD-3-Clause
//
// Pool parts: the cached files that were committed with a pool get what they had at its version,
// and are files like others then, before another number of ranks goes on with the pool.
//
// A crash in between leaves a part, or a file that lacks nothing (cache.C2): whoever starts next,
// on whatever number of ranks, finds the pool and its files at the same version.
//
// Threads: any. Failure: what could not be recovered stays, and the error names it.
#pragma once

#include <string>

#include "base/status.hpp"
#include "parts/part_facts.hpp"

namespace perdure {

// Local. Of the parts in the pool's directory, and of those that a note there says to be elsewhere
// on this machine. Code::unsupported: a file has parts on several nodes, and its ranks must close
// it.
Status recover_pool_parts(const std::string& pool, const PoolVersion& version);

}  // namespace perdure
