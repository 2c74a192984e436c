// SPDX-License-Identifier: BSD-3-Clause
//
// What the module tells the checker of structs: their sizes, and, where debug information has them,
// the names and places of their members.
#pragma once

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>

namespace perdure {

// A constant of the module that nobody else names; and a text as one.
llvm::Constant* private_constant(llvm::Module& module, llvm::Constant* value, const char* name);
llvm::Constant* private_text(llvm::Module& module, const std::string& words);

// Of which struct an address is a part: the outermost one that leads to it.
struct PartOfStruct {
  llvm::StructType* type = nullptr;  // null: of none
  int64_t offset = -1;               // in it; -1: differs from access to access
};
PartOfStruct part_of_struct(const llvm::Value* address, const llvm::DataLayout& layout);

// A constant of type perdure_ipv_type for each struct.
class TypeConstants {
 public:
  explicit TypeConstants(llvm::Module& module);
  // A null pointer for no type, and for one without a name.
  llvm::Constant* of(llvm::StructType* type);

 private:
  llvm::Constant* make(llvm::StructType& type);
  const llvm::DICompositeType* described(const std::string& name, uint64_t bytes) const;

  llvm::Module& module_;
  // By name and size; null: several that differ have it.
  std::map<std::pair<std::string, uint64_t>, const llvm::DICompositeType*> described_;
  std::map<llvm::StructType*, llvm::Constant*> made_;
};

}  // namespace perdure
