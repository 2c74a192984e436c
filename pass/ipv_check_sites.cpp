// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check_sites.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace perdure {

using llvm::Constant;
using llvm::ConstantInt;
using llvm::GlobalVariable;

namespace {

std::string function_name(const llvm::Function& function) {
  if (const llvm::DISubprogram* program = function.getSubprogram()) {
    if (!program->getName().empty()) return program->getName().str();
  }
  return llvm::demangle(function.getName());
}

// Flang's names: _QMfieldEu is u of the module field, _QFstepEu u of the procedure step.
std::string variable_name(const GlobalVariable& variable) {
  const llvm::StringRef name = variable.getName();
  if (name.starts_with("_QM") || name.starts_with("_QF")) {
    const auto [scope, own] = name.drop_front(3).rsplit('E');
    if (!own.empty()) return (scope + "::" + own).str();
  }
  llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
  variable.getDebugInfo(described);
  const std::string readable = llvm::demangle(name);
  if (readable == name && !described.empty() && !described[0]->getVariable()->getName().empty()) {
    return described[0]->getVariable()->getName().str();  // static in a function: without a suffix
  }
  return readable;
}

bool is_told(const GlobalVariable& variable) {
  return !variable.isDeclaration() && !variable.hasAvailableExternallyLinkage() &&
         !variable.isConstant() && !variable.isThreadLocal() && variable.hasName() &&
         variable.getAddressSpace() == 0 && !variable.getName().starts_with("llvm.") &&
         !variable.getName().starts_with("perdure_") && !variable.getName().starts_with("_ZGV") &&
         variable.getValueType()->isSized();
}

unsigned line_of(const GlobalVariable& variable) {
  llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
  variable.getDebugInfo(described);
  return described.empty() ? 0 : described[0]->getVariable()->getLine();
}

}  // namespace

SiteConstants::SiteConstants(llvm::Module& module) : module_(module), types_(module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* half = llvm::Type::getInt32Ty(context);
  llvm::Type* words = llvm::ArrayType::get(llvm::Type::getInt64Ty(context), 4);
  type_ = llvm::StructType::get(context, {pointer, pointer, half, half, half, half, pointer,
                                          llvm::Type::getInt64Ty(context), words});
}

Constant* SiteConstants::text(const std::string& words) {
  Constant*& place = texts_[words];
  if (place == nullptr) place = private_text(module_, words);
  return place;
}

Constant* SiteConstants::site_of(const llvm::Instruction& at, const llvm::LoopInfo& loops,
                                 const llvm::Value* address) {
  const llvm::DebugLoc& where = at.getDebugLoc();
  unsigned nest_line = 0;
  if (const llvm::Loop* loop = loops.getLoopFor(at.getParent())) {
    const llvm::DebugLoc begin = loop->getOutermostLoop()->getStartLoc();
    if (begin) nest_line = begin.getLine();
  }
  const PartOfStruct part =
      address == nullptr ? PartOfStruct{} : part_of_struct(address, module_.getDataLayout());
  const std::string file = where ? where->getFilename().str() : module_.getSourceFileName();
  const Key key{file,
                function_name(*at.getFunction()),
                where ? where.getLine() : 0,
                where ? where.getCol() : 0,
                nest_line,
                part.type,
                part.offset};
  Constant*& site = sites_[key];
  if (site != nullptr) return site;
  llvm::Type* half = llvm::Type::getInt32Ty(module_.getContext());
  Constant* fields = llvm::ConstantStruct::get(
      type_, {text(std::get<0>(key)), text(std::get<1>(key)),
              ConstantInt::get(half, std::get<2>(key)), ConstantInt::get(half, std::get<3>(key)),
              ConstantInt::get(half, nest_line), ConstantInt::get(half, 0), types_.of(part.type),
              ConstantInt::getSigned(type_->getElementType(7), part.offset),
              Constant::getNullValue(type_->getElementType(8))});
  site = new GlobalVariable(module_, type_, false, GlobalVariable::PrivateLinkage, fields,
                            "perdure_ipv_check_site");
  return site;
}

void tell_globals(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  const llvm::DataLayout& layout = module.getDataLayout();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* half = llvm::Type::getInt32Ty(context);
  auto* type = llvm::StructType::get(context, {pointer, word, pointer, pointer, half, half});
  Constant* file = nullptr;
  std::vector<GlobalVariable*> told;
  for (GlobalVariable& variable : module.globals()) {
    if (is_told(variable)) told.push_back(&variable);
  }
  if (told.empty()) return;
  file = private_text(module, module.getSourceFileName());
  std::vector<Constant*> rows;
  for (GlobalVariable* variable : told) {
    const uint64_t bytes = layout.getTypeAllocSize(variable->getValueType()).getFixedValue();
    rows.push_back(llvm::ConstantStruct::get(
        type,
        {variable, ConstantInt::get(word, bytes), private_text(module, variable_name(*variable)),
         file, ConstantInt::get(half, line_of(*variable)),
         ConstantInt::get(half, variable->getValueType()->isAggregateType() ? 0 : 1)}));
  }
  auto* table_type = llvm::ArrayType::get(type, rows.size());
  auto* table =
      new GlobalVariable(module, table_type, true, GlobalVariable::PrivateLinkage,
                         llvm::ConstantArray::get(table_type, rows), "perdure_ipv_check_variables");
  llvm::FunctionCallee tell = module.getOrInsertFunction(
      "perdure_ipv_check_globals", llvm::Type::getVoidTy(context), pointer, word);
  auto* begin = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
      llvm::GlobalValue::InternalLinkage, "perdure_ipv_check_module", module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", begin));
  builder.CreateCall(tell, {table, builder.getInt64(rows.size())});
  builder.CreateRetVoid();
  llvm::appendToGlobalCtors(module, begin, 1);
}

}  // namespace perdure
