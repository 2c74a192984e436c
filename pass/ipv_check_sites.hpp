// SPDX-License-Identifier: BSD-3-Clause
//
// What the module tells the checker: the places of its accesses, and its variables.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <tuple>

#include "ipv_check_types.hpp"

namespace perdure {

// A constant of type perdure_ipv_site for each place; equal places share one.
class SiteConstants {
 public:
  explicit SiteConstants(llvm::Module& module);

  // `address`: which is accessed there, or null.
  llvm::Constant* site_of(const llvm::Instruction& at, const llvm::LoopInfo& loops,
                          const llvm::Value* address);

 private:
  llvm::Constant* text(const std::string& words);

  using Key = std::tuple<std::string, std::string, unsigned, unsigned, unsigned, llvm::StructType*,
                         int64_t>;
  llvm::Module& module_;
  llvm::StructType* type_;
  TypeConstants types_;
  std::map<Key, llvm::Constant*> sites_;
  std::map<std::string, llvm::Constant*> texts_;
};

// Makes the module call perdure_ipv_check_globals() when it begins, if it has variables.
void tell_globals(llvm::Module& module);

}  // namespace perdure
