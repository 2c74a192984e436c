// SPDX-License-Identifier: BSD-3-Clause
//
// Rows that a loop stores to past the cache. Non-temporal stores in front of the vectoriser keep
// LLVM 19 from vectorising the loop, so there are two steps.
//
// In front of the vectoriser, ipv_version.hpp makes a copy of the row loop for rows that the
// runtime would have past the cache (perdure_ipv_abi.h, abi.R5). A call of `begin_mark` is inserted
// before the copy, `end_mark` after it. Each store to a row is in the alias scope `row`, all else
// that writes to memory in `other`; no access says that it is outside of one of them, so they
// promise nothing. What passes merge is in the scopes of all of it, or in none. (Access groups
// would be as good, but LLVM 19 drops them where several stores become one vector.) Whether the
// copy is run at all depends on a call of `trust_mark`.
//
// As the last optimisation, PastCachePass looks at all that is between the marks by then. If each
// instruction that writes to memory there is still in one of the scopes, and each store to a row is
// of a kind of which the processor has a non-temporal store, these stores become non-temporal, and
// the copy is trusted: nothing was merged, and nothing left the marks, which are calls of which
// nobody knows what they do. Otherwise the copy is never run. The marks vanish either way.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassManager.h>

namespace perdure {

// The same of every copy of a loop that later passes make.
using PastCacheSite = uint64_t;

enum class PastCacheScope : unsigned { row, other };

class PastCacheMarks {
 public:
  explicit PastCacheMarks(llvm::Module& module) : module_(module) {}
  // If the target has non-temporal stores that pass the cache, and the whole pipeline follows.
  static bool possible(const llvm::Module& module);
  PastCacheSite new_site();

  static void put_into(llvm::Instruction& instruction, PastCacheScope scope);
  void begin(llvm::Instruction* before, PastCacheSite site);
  void end(llvm::Instruction* before);
  llvm::Value* is_trusted(llvm::Instruction* before, PastCacheSite site);

 private:
  llvm::Module& module_;
};

// Of a store's value: the processor has a non-temporal store of its kind.
bool can_pass_cache(const llvm::Type* type, const llvm::DataLayout& layout);

// A store that PastCachePass made.
bool is_past_cache(const llvm::Instruction& instruction);

class PastCachePass : public llvm::PassInfoMixin<PastCachePass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace perdure
