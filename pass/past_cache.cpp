// SPDX-License-Identifier: BSD-3-Clause
#include "past_cache.hpp"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <map>
#include <set>

namespace perdure {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::LLVMContext;
using llvm::Module;
using llvm::StoreInst;
using llvm::Type;

namespace {

constexpr llvm::StringLiteral begin_mark = "perdure_ipv_past_cache.begin";
constexpr llvm::StringLiteral end_mark = "perdure_ipv_past_cache.end";
constexpr llvm::StringLiteral trust_mark = "perdure_ipv_past_cache.trusted";
// Its operands are the scopes, in the order of PastCacheScope.
constexpr llvm::StringLiteral scopes_name = "perdure_ipv_past_cache.scopes";

constexpr llvm::StringLiteral made_kind = "perdure.past_cache";

constexpr uint64_t aligned_bytes = 16;

llvm::MDNode* scope_node(Module& module, PastCacheScope scope) {
  llvm::NamedMDNode* scopes = module.getOrInsertNamedMetadata(scopes_name);
  llvm::MDBuilder builder(module.getContext());
  while (scopes->getNumOperands() < 2) {
    auto* domain = builder.createAnonymousAliasScopeDomain(scopes_name);
    scopes->addOperand(builder.createAnonymousAliasScope(domain));
  }
  return scopes->getOperand(static_cast<unsigned>(scope));
}

// The scopes of an instruction, ours among them.
class Scopes {
 public:
  Scopes(const Instruction& instruction, const llvm::NamedMDNode& ours) : ours_(ours) {
    if (const auto* list = instruction.getMetadata(LLVMContext::MD_alias_scope)) {
      all_.append(list->op_begin(), list->op_end());
    }
  }
  bool has(PastCacheScope scope) const {
    return llvm::is_contained(all_, ours_.getOperand(static_cast<unsigned>(scope)));
  }
  bool is_only(PastCacheScope scope) const {
    return has(scope) &&
           !has(scope == PastCacheScope::row ? PastCacheScope::other : PastCacheScope::row);
  }
  // Without ours; null if none is left.
  llvm::MDNode* rest(LLVMContext& context) const {
    llvm::SmallVector<llvm::Metadata*, 4> rest;
    for (llvm::Metadata* scope : all_) {
      if (!llvm::is_contained(ours_.operands(), scope)) rest.push_back(scope);
    }
    return rest.empty() ? nullptr : llvm::MDNode::get(context, rest);
  }

 private:
  const llvm::NamedMDNode& ours_;
  llvm::SmallVector<llvm::Metadata*, 4> all_;
};

bool is_call_of(const Instruction& instruction, llvm::StringRef name) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee != nullptr && callee->getName() == name;
}

// What lies between a begin and its end.
struct Marked {
  std::vector<StoreInst*> stores;  // to rows
  bool as_it_was = true;           // nothing else writes to memory but what did before
};

class Region {
 public:
  Region(Instruction* begin, const Module& module, const llvm::NamedMDNode& ours)
      : layout_(module.getDataLayout()), ours_(ours) {
    look_at(std::next(begin->getIterator()), begin->getParent());
    while (!open_.empty()) {
      llvm::BasicBlock* block = open_.back();
      open_.pop_back();
      look_at(block->begin(), block);
    }
  }
  const Marked& found() const { return found_; }

 private:
  void look_at(llvm::BasicBlock::iterator at, llvm::BasicBlock* block) {
    for (; at != block->end(); ++at) {
      if (is_call_of(*at, end_mark)) return;
      look_at(*at);
    }
    if (llvm::isa<llvm::ReturnInst>(block->getTerminator())) found_.as_it_was = false;
    for (llvm::BasicBlock* next : llvm::successors(block)) {
      if (seen_.insert(next).second) open_.push_back(next);
    }
  }

  void look_at(Instruction& instruction) {
    if (!instruction.mayWriteToMemory() || llvm::isa<llvm::DbgInfoIntrinsic>(instruction)) return;
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (intrinsic != nullptr && intrinsic->isAssumeLikeIntrinsic()) return;
    const Scopes scopes(instruction, ours_);
    if (scopes.is_only(PastCacheScope::other)) return;
    auto* store = llvm::dyn_cast<StoreInst>(&instruction);
    if (store == nullptr || !scopes.is_only(PastCacheScope::row) ||
        !can_pass_cache(store->getValueOperand()->getType(), layout_)) {
      found_.as_it_was = false;
      return;
    }
    found_.stores.push_back(store);
  }

  const llvm::DataLayout& layout_;
  const llvm::NamedMDNode& ours_;
  Marked found_;
  std::set<llvm::BasicBlock*> seen_;
  std::vector<llvm::BasicBlock*> open_;
};

void mark_made(Instruction& made) {
  made.setMetadata(made_kind, llvm::MDNode::get(made.getContext(), {}));
}

// LLVM 19 does not choose movnti for the bits of a float, so it is asked for by name.
void store_word(IRBuilder<>& builder, llvm::Value* value, llvm::Value* place, const char* code) {
  auto* type =
      llvm::FunctionType::get(builder.getVoidTy(), {place->getType(), value->getType()}, false);
  auto* call = builder.CreateCall(
      llvm::InlineAsm::get(type, code, "r,r,~{memory}", /*hasSideEffects=*/true), {place, value});
  call->setDoesNotThrow();
  mark_made(*call);
}

// Of vectors there are non-temporal stores where 16 bytes are aligned. Whether they are is asked at
// each, as it is the same in all of a row: two words are stored where they are not.
void store_words(StoreInst& store, llvm::Value* vector, uint64_t count) {
  IRBuilder<> front(&store);
  llvm::Value* address = front.CreatePtrToInt(store.getPointerOperand(), front.getInt64Ty());
  Instruction *aligned = nullptr, *other = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(
      front.CreateIsNull(front.CreateAnd(address, aligned_bytes - 1)), &store, &aligned, &other,
      llvm::MDBuilder(store.getContext()).createLikelyBranchWeights());
  for (uint64_t word = 0; word < count; ++word) {
    for (Instruction* where : {aligned, other}) {
      IRBuilder<> builder(where);
      llvm::Value* place =
          builder.CreateConstGEP1_64(builder.getInt64Ty(), store.getPointerOperand(), word);
      const int low = static_cast<int>(word);
      if (where == other) {
        store_word(builder, builder.CreateExtractElement(vector, word), place, "movntiq $1, ($0)");
      } else if (word % 2 == 0) {
        StoreInst* pair = builder.CreateAlignedStore(
            builder.CreateShuffleVector(vector, {low, low + 1}), place, llvm::Align(aligned_bytes));
        pair->setMetadata(LLVMContext::MD_nontemporal,
                          llvm::MDNode::get(pair->getContext(),
                                            llvm::ConstantAsMetadata::get(builder.getInt32(1))));
        mark_made(*pair);
      }
    }
  }
}

void store_past_cache(StoreInst& store) {
  IRBuilder<> builder(&store);
  llvm::Value* value = store.getValueOperand();
  const uint64_t bytes = store.getDataLayout().getTypeStoreSize(value->getType()).getFixedValue();
  if (bytes == 4) {
    value = builder.CreateBitCast(value, builder.getInt32Ty());
    store_word(builder, value, store.getPointerOperand(), "movntil $1, ($0)");
  } else if (bytes == 8) {
    if (!value->getType()->isPointerTy())
      value = builder.CreateBitCast(value, builder.getInt64Ty());
    store_word(builder, value, store.getPointerOperand(), "movntiq $1, ($0)");
  } else {
    const auto count = static_cast<unsigned>(bytes / 8);
    auto* words = llvm::FixedVectorType::get(builder.getInt64Ty(), count);
    if (value->getType()->isPtrOrPtrVectorTy()) value = builder.CreatePtrToInt(value, words);
    store_words(store, builder.CreateBitCast(value, words), count);
  }
  store.eraseFromParent();
}

class FunctionPasser {
 public:
  FunctionPasser(llvm::Function& function, const llvm::NamedMDNode& ours)
      : function_(function), ours_(ours) {}

  void run() {
    for (Instruction& instruction : llvm::instructions(function_)) {
      if (is_call_of(instruction, begin_mark)) begins_.push_back(&instruction);
      if (is_call_of(instruction, end_mark)) gone_.push_back(&instruction);
      if (is_call_of(instruction, trust_mark)) trusts_.push_back(&instruction);
    }
    for (Instruction* begin : begins_) look_between(begin);
    llvm::SetVector<StoreInst*> found;  // a block may lie after several begins
    for (Instruction* begin : begins_) {
      const auto& stores = stores_[begin];
      if (!distrusted_.count(site_of(begin))) found.insert(stores.begin(), stores.end());
      gone_.push_back(begin);
    }
    for (StoreInst* store : found) store_past_cache(*store);
    for (Instruction* trust : trusts_) {
      // A site without a copy is never asked for: then nothing depends on the answer.
      const bool trusted = !distrusted_.count(site_of(trust));
      trust->replaceAllUsesWith(llvm::ConstantInt::getBool(trust->getType(), trusted));
      gone_.push_back(trust);
    }
    for (Instruction* instruction : gone_) instruction->eraseFromParent();
    forget_scopes();
  }

 private:
  static PastCacheSite site_of(const Instruction* mark) {
    return llvm::cast<llvm::ConstantInt>(llvm::cast<llvm::CallBase>(mark)->getArgOperand(0))
        ->getZExtValue();
  }

  void look_between(Instruction* begin) {
    const Region region(begin, *function_.getParent(), ours_);
    if (!region.found().as_it_was) distrusted_.insert(site_of(begin));
    stores_[begin] = region.found().stores;
  }

  void forget_scopes() {
    for (Instruction& instruction : llvm::instructions(function_)) {
      if (instruction.getMetadata(LLVMContext::MD_alias_scope) == nullptr) continue;
      instruction.setMetadata(LLVMContext::MD_alias_scope,
                              Scopes(instruction, ours_).rest(function_.getContext()));
    }
  }

  llvm::Function& function_;
  const llvm::NamedMDNode& ours_;
  std::vector<Instruction*> begins_, trusts_, gone_;
  std::map<Instruction*, std::vector<StoreInst*>> stores_;
  std::set<PastCacheSite> distrusted_;
};

bool has_marks(const llvm::Function& function) {
  for (const Instruction& instruction : llvm::instructions(function)) {
    for (const auto mark : {begin_mark, end_mark, trust_mark}) {
      if (is_call_of(instruction, mark)) return true;
    }
  }
  return false;
}

}  // namespace

bool can_pass_cache(const Type* type, const llvm::DataLayout& layout) {
  if (type->isX86_FP80Ty() || type->isAggregateType() || llvm::isa<llvm::ScalableVectorType>(type))
    return false;
  const llvm::TypeSize size = layout.getTypeSizeInBits(const_cast<Type*>(type));
  const uint64_t bits = size.getFixedValue();
  if (bits == 32 || bits == 64) return true;
  return type->isVectorTy() && bits % 128 == 0 && llvm::isPowerOf2_64(bits) &&
         layout.getTypeStoreSizeInBits(const_cast<Type*>(type)) == size &&
         type->getScalarSizeInBits() >= 32;
}

bool is_past_cache(const Instruction& instruction) {
  return instruction.hasMetadata(made_kind);
}

// The linker's optimiser, which would vectorise, does not load the plug-in: what it is handed has
// been through both steps before.
bool PastCacheMarks::possible(const Module& module) {
  return llvm::Triple(module.getTargetTriple()).getArch() == llvm::Triple::x86_64 &&
         module.getModuleFlag("EnableSplitLTOUnit") == nullptr &&
         module.getModuleFlag("ThinLTO") == nullptr;
}

PastCacheSite PastCacheMarks::new_site() {
  const llvm::Function* trust = module_.getFunction(trust_mark);
  return trust == nullptr ? 0 : trust->getNumUses();
}

void PastCacheMarks::put_into(Instruction& instruction, PastCacheScope scope) {
  auto* ours =
      llvm::MDNode::get(instruction.getContext(), scope_node(*instruction.getModule(), scope));
  instruction.setMetadata(
      LLVMContext::MD_alias_scope,
      llvm::MDNode::concatenate(instruction.getMetadata(LLVMContext::MD_alias_scope), ours));
}

void PastCacheMarks::begin(Instruction* before, PastCacheSite site) {
  IRBuilder<> builder(before);
  const auto mark = module_.getOrInsertFunction(
      begin_mark, llvm::FunctionType::get(builder.getVoidTy(), {builder.getInt64Ty()}, false));
  builder.CreateCall(mark, {builder.getInt64(site)})->setDoesNotThrow();
}

void PastCacheMarks::end(Instruction* before) {
  IRBuilder<> builder(before);
  const auto mark = module_.getOrInsertFunction(
      end_mark, llvm::FunctionType::get(builder.getVoidTy(), {}, false));
  builder.CreateCall(mark, {})->setDoesNotThrow();
}

llvm::Value* PastCacheMarks::is_trusted(Instruction* before, PastCacheSite site) {
  IRBuilder<> builder(before);
  const auto mark = module_.getOrInsertFunction(
      trust_mark, llvm::FunctionType::get(builder.getInt1Ty(), {builder.getInt64Ty()}, false));
  auto* call = builder.CreateCall(mark, {builder.getInt64(site)});
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

llvm::PreservedAnalyses PastCachePass::run(Module& module, llvm::ModuleAnalysisManager& analyses) {
  llvm::NamedMDNode* scopes = module.getNamedMetadata(scopes_name);
  if (scopes == nullptr) return llvm::PreservedAnalyses::all();
  auto& of_functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  llvm::InitializeNativeTargetAsmParser();  // for movnti; Flang 19 comes without
  llvm::SimplifyCFGPass simplify;
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || !has_marks(function)) continue;
    FunctionPasser(function, *scopes).run();
    of_functions.invalidate(function, llvm::PreservedAnalyses::none());
    simplify.run(function, of_functions);
    of_functions.invalidate(function, llvm::PreservedAnalyses::none());
  }
  module.eraseNamedMetadata(scopes);
  for (const auto mark : {begin_mark, end_mark, trust_mark}) {
    if (llvm::Function* function = module.getFunction(mark)) function->eraseFromParent();
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace perdure
