// SPDX-License-Identifier: BSD-3-Clause
#include "accesses.hpp"

#include "past_cache.hpp"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

namespace perdure {

using llvm::Instruction;
using llvm::IntrinsicInst;
using llvm::Value;

namespace {

// The accesses of one instruction.
class Walk {
 public:
  Walk(llvm::Function& function, const llvm::TargetLibraryInfo& library,
       const std::string& recorder, AccessSink& sink)
      : function_(function),
        layout_(function.getParent()->getDataLayout()),
        library_(library),
        recorder_(recorder),
        emit_(sink) {}

  void instruction(Instruction* at) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(at)) {
      plain(at, load->getPointerOperand(), load->getType(), load->getAlign(), false);
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(at)) {
      plain(at, store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(),
            true);
    } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(at)) {
      both(at, update->getPointerOperand(), update->getValOperand()->getType(), update->getAlign());
    } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(at)) {
      both(at, exchange->getPointerOperand(), exchange->getNewValOperand()->getType(),
           exchange->getAlign());
    } else if (auto* intrinsic = llvm::dyn_cast<IntrinsicInst>(at)) {
      this->intrinsic(intrinsic);
    } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(at)) {
      library_call(call);
    }
  }

 private:
  static bool is_memory(const Value* pointer) {
    // Others are not addresses of the process: %fs and %gs on x86, for one.
    return pointer->getType()->getPointerAddressSpace() == 0 && !pointer->isSwiftError();
  }

  void plain(Instruction* at, Value* pointer, llvm::Type* type, llvm::Align align, bool is_write) {
    if (!is_memory(pointer)) return;
    const llvm::TypeSize size = layout_.getTypeStoreSize(type);
    if (size.isScalable()) {
      llvm::IRBuilder<> builder(at);
      emit_.range(at, pointer, builder.CreateTypeSize(builder.getInt64Ty(), size), is_write);
      return;
    }
    emit_.access(at, pointer, size.getFixedValue(), align.value() >= size.getFixedValue(),
                 is_write);
  }

  void both(Instruction* at, Value* pointer, llvm::Type* type, llvm::Align align) {
    plain(at, pointer, type, align, false);
    plain(at, pointer, type, align, true);
  }

  void intrinsic(IntrinsicInst* at) {
    if (auto* transfer = llvm::dyn_cast<llvm::AnyMemTransferInst>(at)) {
      emit_.copy(at, transfer->getRawDest(), transfer->getRawSource(), transfer->getLength());
      return;
    }
    if (auto* set = llvm::dyn_cast<llvm::AnyMemSetInst>(at)) {
      emit_.range(at, set->getRawDest(), set->getLength(), true);
      return;
    }
    switch (at->getIntrinsicID()) {
      case llvm::Intrinsic::masked_load:
        masked(at, at->getArgOperand(0), at->getType(), at->getArgOperand(2), false);
        return;
      case llvm::Intrinsic::masked_store:
        masked(at, at->getArgOperand(1), at->getArgOperand(0)->getType(), at->getArgOperand(3),
               true);
        return;
      case llvm::Intrinsic::masked_gather:
        each_lane(at, at->getArgOperand(0), at->getType(), at->getArgOperand(2), false);
        return;
      case llvm::Intrinsic::masked_scatter:
        each_lane(at, at->getArgOperand(1), at->getArgOperand(0)->getType(), at->getArgOperand(3),
                  true);
        return;
      case llvm::Intrinsic::masked_expandload:
        packed(at, at->getArgOperand(0), at->getType(), at->getArgOperand(1), false);
        return;
      case llvm::Intrinsic::masked_compressstore:
        packed(at, at->getArgOperand(1), at->getArgOperand(0)->getType(), at->getArgOperand(2),
               true);
        return;
      default:
        unknown(at);
    }
  }

  uint64_t element_bytes(llvm::Type* vector) const {
    return layout_.getTypeStoreSize(vector->getScalarType()).getFixedValue();
  }

  bool is_fixed(Instruction* at, llvm::Type* vector) {
    if (llvm::isa<llvm::FixedVectorType>(vector)) return true;
    warn(at, "masked accesses of scalable vectors are");
    return false;
  }

  static bool all_lanes(const Value* mask) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
    return constant != nullptr && constant->isAllOnesValue();
  }

  void masked(Instruction* at, Value* pointer, llvm::Type* type, Value* mask, bool is_write) {
    if (!is_memory(pointer) || !is_fixed(at, type)) return;
    if (all_lanes(mask)) {
      plain(at, pointer, type, llvm::Align(1), is_write);
    } else {
      lanes(at, pointer, element_bytes(type), mask, is_write);
    }
  }

  // More lanes than bits in a word: in pieces.
  void lanes(Instruction* at, Value* pointer, uint64_t bytes, Value* mask, bool is_write) {
    llvm::IRBuilder<> builder(at);
    const auto count = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
    for (unsigned first = 0; first < count; first += 64) {
      const unsigned width = std::min(count - first, 64U);
      Value* piece = mask;
      if (width != count) {
        llvm::SmallVector<int, 64> chosen;
        for (unsigned lane = 0; lane < width; ++lane) {
          chosen.push_back(static_cast<int>(first + lane));
        }
        piece = builder.CreateShuffleVector(mask, chosen);
      }
      Value* bits = builder.CreateZExt(builder.CreateBitCast(piece, builder.getIntNTy(width)),
                                       builder.getInt64Ty());
      Value* address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
      address = builder.CreateAdd(address, builder.getInt64(uint64_t{first} * bytes));
      emit_.lanes(at, address, bytes, bits, is_write);
    }
  }

  void each_lane(Instruction* at, Value* pointers, llvm::Type* type, Value* mask, bool is_write) {
    if (!is_fixed(at, type)) return;
    const uint64_t bytes = element_bytes(type);
    const unsigned count = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
    for (unsigned lane = 0; lane < count; ++lane) {
      llvm::IRBuilder<> builder(at);
      Value* pointer = builder.CreateExtractElement(pointers, lane);
      if (all_lanes(mask)) {
        emit_.access(at, pointer, bytes, false, is_write);
      } else {
        Value* bit =
            builder.CreateZExt(builder.CreateExtractElement(mask, lane), builder.getInt64Ty());
        emit_.range(at, pointer, builder.CreateMul(bit, builder.getInt64(bytes)), is_write);
      }
    }
  }

  // As many consecutive elements as the mask has ones.
  void packed(Instruction* at, Value* pointer, llvm::Type* type, Value* mask, bool is_write) {
    if (!is_memory(pointer) || !is_fixed(at, type)) return;
    llvm::IRBuilder<> builder(at);
    llvm::Type* word = builder.getInt64Ty();
    const unsigned count = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
    Value* lanes = builder.CreateZExt(mask, llvm::FixedVectorType::get(word, count));
    Value* ones = builder.CreateAddReduce(lanes);
    emit_.range(at, pointer, builder.CreateMul(ones, builder.getInt64(element_bytes(type))),
                is_write);
  }

  // Those that only mark memory (lifetime, assume, prefetch, debug information) are not accesses.
  void unknown(IntrinsicInst* at) {
    if (at->isAssumeLikeIntrinsic() || !at->mayReadOrWriteMemory()) return;
    if (at->getIntrinsicID() == llvm::Intrinsic::prefetch || !at->onlyAccessesArgMemory()) return;
    for (const llvm::Use& argument : at->args()) {
      if (!argument->getType()->isPtrOrPtrVectorTy()) continue;
      warn(at, "accesses of " + at->getCalledFunction()->getName().str() + " are");
      return;
    }
  }

  void library_call(llvm::CallBase* at) {
    llvm::LibFunc function;
    if (at->getCalledFunction() == nullptr || !library_.getLibFunc(*at, function)) return;
    switch (function) {
      case llvm::LibFunc_memcpy:
      case llvm::LibFunc_memmove:
      case llvm::LibFunc_mempcpy:
        emit_.copy(at, at->getArgOperand(0), at->getArgOperand(1), at->getArgOperand(2));
        return;
      case llvm::LibFunc_memset:
        emit_.range(at, at->getArgOperand(0), at->getArgOperand(2), true);
        return;
      default:
        return;
    }
  }

  void warn(Instruction* at, const std::string& what) {
    function_.getContext().diagnose(llvm::DiagnosticInfoUnsupported(
        function_, recorder_ + ": " + what + " not recorded", at->getDebugLoc(), llvm::DS_Warning));
  }

  llvm::Function& function_;
  const llvm::DataLayout& layout_;
  const llvm::TargetLibraryInfo& library_;
  const std::string& recorder_;
  AccessSink& emit_;
};

}  // namespace

bool is_left_alone(const llvm::Function& function, llvm::StringRef prefix) {
  return function.isDeclaration() || function.hasAvailableExternallyLinkage() ||
         function.hasFnAttribute(llvm::Attribute::Naked) ||
         function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation) ||
         function.getName().starts_with(prefix);
}

std::vector<Instruction*> instructions_that_access(llvm::Function& function) {
  std::vector<Instruction*> accesses;
  for (Instruction& instruction : llvm::instructions(function)) {
    if (is_past_cache(instruction)) continue;
    if (instruction.mayReadOrWriteMemory() || llvm::isa<llvm::CallBase>(instruction)) {
      accesses.push_back(&instruction);
    }
  }
  return accesses;
}

void visit_accesses(llvm::Function& function, const std::vector<Instruction*>& instructions,
                    const llvm::TargetLibraryInfo& library, const std::string& recorder,
                    AccessSink& sink) {
  Walk walk(function, library, recorder, sink);
  for (Instruction* instruction : instructions) walk.instruction(instruction);
}

void forget_promises(llvm::Function& function) {
  function.removeFnAttr(llvm::Attribute::Memory);
  function.removeFnAttr(llvm::Attribute::NoSync);
  for (llvm::Argument& argument : function.args()) argument.removeAttr(llvm::Attribute::Writable);
  function.setMemoryEffects(llvm::MemoryEffects::unknown());
  for (Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || llvm::isa<IntrinsicInst>(call)) continue;
    call->removeFnAttr(llvm::Attribute::Memory);
  }
}

}  // namespace perdure
