// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_build.hpp"

#include "perdure/perdure_ipv_abi.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/MD5.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace perdure::ipv {

std::string hash_of(const llvm::Module& module) {
  const std::unique_ptr<llvm::Module> plain = llvm::CloneModule(module);
  llvm::StripDebugInfo(*plain);
  // Flags of debug information, the compiler's command; which file it was says the note.
  while (!plain->named_metadata_empty()) plain->eraseNamedMetadata(&*plain->named_metadata_begin());
  plain->setModuleIdentifier("");
  plain->setSourceFileName("");
  std::string text;
  llvm::raw_string_ostream(text) << *plain;
  return llvm::toHex(llvm::MD5::hash(llvm::arrayRefFromStringRef<uint8_t>(text)), true);
}

void note_build(llvm::Module& module, const std::string& hash) {
  llvm::LLVMContext& context = module.getContext();
  std::string bytes(PERDURE_IPV_BUILD_MARK);
  bytes += hash;
  bytes += PERDURE_IPV_NOT_CHECKED;
  bytes += module.getSourceFileName();
  llvm::Constant* content = llvm::ConstantDataArray::getString(context, bytes);
  // Not a constant: what the file has may be changed after this build.
  auto* note =
      new llvm::GlobalVariable(module, content->getType(), false, llvm::GlobalValue::PrivateLinkage,
                               content, "perdure_ipv_build");
  note->setAlignment(llvm::Align(1));
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  auto* constructor =
      llvm::Function::Create(llvm::FunctionType::get(nothing, false),
                             llvm::GlobalValue::InternalLinkage, "perdure_ipv_note_build", module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", constructor));
  builder.CreateCall(module.getOrInsertFunction("perdure_ipv_build_is", nothing,
                                                llvm::PointerType::getUnqual(context)),
                     {note});
  builder.CreateRetVoid();
  llvm::appendToGlobalCtors(module, constructor, 65535);
}

}  // namespace perdure::ipv
