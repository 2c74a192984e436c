// SPDX-License-Identifier: BSD-3-Clause
//
// Further versions of a row loop: one whose loads of the rows have the differences added, for when
// one of them is not 0, and one that also stores past the cache (ipv_past_cache.hpp). Each is made
// only where it differs: without loads of a row there is none with differences.
//
// Both run only for rows of an object: other rows have a difference of 0, and nobody wants them
// past the cache. A row of which bytes are copied runs the second version whenever it is announced,
// as all of it is to be stored to (R1 of perdure_ipv_abi.h); where the difference is 0 they are
// stored to as they are. So what is tested in front of a row loop holds in them: no access but the
// row's touches the object. That is what they tell the vectoriser, where it is all that it needs to
// know.
#pragma once

#include "ipv_find.hpp"

namespace perdure::ipv {

// A row as values in front of its loop. `row` is of the loop itself, not of a copy.
struct VersionedRow {
  const Row* row = nullptr;
  llvm::Value* first = nullptr;            // pointer; null: not past the cache
  llvm::Value* load_difference = nullptr;  // 64 bits
  llvm::Value* past_cache = nullptr;       // 64 bits: not 0 if the runtime would have it so
  // Of a row of which bytes are copied.
  llvm::Value* bytes = nullptr;      // 64 bits
  llvm::Value* announced = nullptr;  // 1 bit: the row is one of an object
};

// In LCSSA form. Returns of each row whether it was stored past the cache, in the exit block; null:
// never.
std::vector<llvm::Value*> version_loop(Analyses& analyses, llvm::Loop* loop,
                                       const std::vector<VersionedRow>& rows);

}  // namespace perdure::ipv
