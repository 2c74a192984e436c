// SPDX-License-Identifier: BSD-3-Clause
//
// What single instructions do to memory.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IntrinsicInst.h>

#include "ipv_find.hpp"

namespace perdure::ipv {

using llvm::Instruction;

namespace {

// Functions of the C library that touch no memory but errno, and return.
bool is_mathematics(const llvm::CallBase& call, const llvm::TargetLibraryInfo& library) {
  llvm::LibFunc function;
  if (!library.getLibFunc(call, function) || !library.has(function)) return false;
  const llvm::StringRef name = library.getName(function);
  static const llvm::StringRef names[] = {
      "acos",     "acosh", "asin", "asinh", "atan",  "atan2", "atanh", "cbrt", "ceil",
      "copysign", "cos",   "cosh", "erf",   "exp",   "exp2",  "expm1", "fabs", "floor",
      "fmax",     "fmin",  "fmod", "log",   "log10", "log1p", "log2",  "pow",  "rint",
      "round",    "sin",   "sinh", "sqrt",  "tan",   "tanh",  "trunc"};
  for (const llvm::StringRef known : names) {
    if (name == known || (name.size() == known.size() + 1 && name.starts_with(known) &&
                          (name.back() == 'f' || name.back() == 'l'))) {
      return true;
    }
  }
  return false;
}

Refusal opaque(const Instruction& at, const llvm::Twine& why) {
  return {"S4", &at, why.str()};
}

std::string name_of(const llvm::CallBase& call) {
  const auto* callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand());
  return callee != nullptr && callee->hasName() ? llvm::demangle(callee->getName())
                                                : "a function pointer";
}

bool is_ordinary(const llvm::Value* pointer) {
  return pointer->getType()->isPointerTy() && pointer->getType()->getPointerAddressSpace() == 0;
}

}  // namespace

uint64_t Access::constant_bytes() const {
  const auto* constant = llvm::dyn_cast_or_null<llvm::SCEVConstant>(bytes);
  return constant == nullptr ? 0 : constant->getAPInt().getZExtValue();
}

const llvm::SCEV* Finder::word(uint64_t value) {
  return analyses_.evolution.getConstant(llvm::Type::getInt64Ty(analyses_.function.getContext()),
                                         value);
}

std::optional<Refusal> Finder::effects(Instruction& instruction, std::vector<Access>& accesses) {
  const llvm::DataLayout& layout = analyses_.function.getParent()->getDataLayout();
  const auto plain = [&](unsigned operand, llvm::Type* type,
                         bool writes) -> std::optional<Refusal> {
    const llvm::TypeSize size = layout.getTypeStoreSize(type);
    if (size.isScalable()) return opaque(instruction, "a scalable vector");
    if (!is_ordinary(instruction.getOperand(operand))) {
      return opaque(instruction, "another address space");
    }
    accesses.push_back({&instruction, operand, word(size.getFixedValue()), writes});
    return std::nullopt;
  };
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    if (!load->isSimple()) return opaque(instruction, "a volatile or atomic access");
    return plain(load->getPointerOperandIndex(), load->getType(), false);
  }
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    if (!store->isSimple()) return opaque(instruction, "a volatile or atomic access");
    return plain(store->getPointerOperandIndex(), store->getValueOperand()->getType(), true);
  }
  if (auto* intrinsic = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) {
    if (intrinsic->isVolatile() || !is_ordinary(intrinsic->getRawDest())) {
      return opaque(instruction, "a volatile access");
    }
    llvm::ScalarEvolution& evolution = analyses_.evolution;
    const llvm::SCEV* bytes = evolution.getTruncateOrZeroExtend(
        evolution.getSCEV(intrinsic->getLength()), word(0)->getType());
    accesses.push_back({&instruction, 0, bytes, true});
    if (auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(intrinsic)) {
      if (!is_ordinary(transfer->getRawSource())) return opaque(instruction, "an address space");
      accesses.push_back({&instruction, 1, bytes, false});
    }
    return std::nullopt;
  }
  if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call)) {
      if (intrinsic->isAssumeLikeIntrinsic() ||
          intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch) {
        return std::nullopt;
      }
    }
    if (llvm::isa<llvm::InvokeInst>(call) || call->hasOperandBundles()) {
      return opaque(instruction, "calls " + name_of(*call) + ", which may throw");
    }
    const bool returns = call->doesNotThrow() && call->hasFnAttr(llvm::Attribute::WillReturn);
    if (call->doesNotAccessMemory() && returns) return std::nullopt;
    if (is_mathematics(*call, analyses_.functions)) return std::nullopt;
    return opaque(instruction, "calls " + name_of(*call));
  }
  if (instruction.mayReadOrWriteMemory()) return opaque(instruction, "an access of another kind");
  if (instruction.mayThrow()) return opaque(instruction, "may throw");
  return std::nullopt;
}

}  // namespace perdure::ipv
