// SPDX-License-Identifier: BSD-3-Clause
//
// The copy of a row loop that stores past the cache: what past_cache.hpp needs of it. Its stores
// begin at 16 bytes, as the processor's non-temporal stores of vectors must: rows of 8 bytes an
// iteration have their first iteration in front of the loop, through the cache, where they begin in
// between. Other rows, and several that begin differently, go through the cache then.
#pragma once

#include "ipv_find.hpp"
#include "past_cache.hpp"

namespace perdure::ipv {

struct PastCacheRow {
  llvm::Value* first = nullptr;   // pointer
  llvm::Value* wanted = nullptr;  // 64 bits: not 0 if the runtime would have it
  int64_t step = 0;
  std::vector<llvm::StoreInst*> stores;  // of the copy
};

class PastCacheLoop {
 public:
  // `copy` leaves for the exit block of the original.
  PastCacheLoop(Analyses& analyses, llvm::Loop& copy)
      : analyses_(analyses), copy_(copy), marks_(*analyses.function.getParent()) {}
  // `before` branches to something else now; to the copy if all rows want it and may. Whether it
  // did, in the exit block.
  llvm::Value* run(llvm::BasicBlock* before, const std::vector<PastCacheRow>& rows);

 private:
  void put_into_scopes(const std::vector<PastCacheRow>& rows);
  llvm::BasicBlock* leave_by_a_block();
  llvm::Value* may_run(llvm::Instruction* where, PastCacheSite site,
                       const std::vector<PastCacheRow>& rows, bool peel);
  void peel_to_alignment(llvm::Value* first);
  std::vector<llvm::Value*> aligned_pointers(const std::vector<PastCacheRow>& rows);

  Analyses& analyses_;
  llvm::Loop& copy_;
  PastCacheMarks marks_;
};

}  // namespace perdure::ipv
