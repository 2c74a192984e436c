// SPDX-License-Identifier: BSD-3-Clause
//
// Further versions of a row loop: one whose loads of the rows have the differences added, for when
// one of them is not 0, and one that also stores past the cache (past_cache.hpp). Each is made
// only where it differs: without loads of a row there is none with differences.
//
// Both run only in boxes that were announced: elsewhere the difference is 0, and nobody wants rows
// past the cache. So what the runtime compared in front of the nest holds in them: no access but
// the row's touches the object. That is what they tell the vectoriser, where it is all that it
// needs to know.
#pragma once

#include "ipv_find.hpp"

namespace perdure::ipv {

// A row of the loop itself, not of a copy, with values in front of its nest.
struct VersionedRow {
  const Row* row = nullptr;
  llvm::Instruction* place = nullptr;      // in front of the nest
  llvm::Value* load_difference = nullptr;  // 64 bits
  llvm::Value* past_cache = nullptr;       // 1 bit: the runtime would have it so
};

// In LCSSA form. Returns of each row whether it is stored past the cache, in front of the nest;
// null: never.
std::vector<llvm::Value*> version_loop(Analyses& analyses, llvm::Loop* loop,
                                       const std::vector<VersionedRow>& rows);

}  // namespace perdure::ipv
