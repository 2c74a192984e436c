#include "trace.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include "perdure/perdure_trace_abi.h"
#include "trace_access.hpp"

namespace perdure {

using llvm::Instruction;
using llvm::IntrinsicInst;
using llvm::Value;

namespace {

// The accesses of one instruction.
class Instrumenter {
 public:
  Instrumenter(llvm::Function& function, const TraceSymbols& symbols,
               const llvm::TargetLibraryInfo& library)
      : function_(function),
        layout_(function.getParent()->getDataLayout()),
        library_(library),
        emit_(function, symbols) {}

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
      emit_.lanes(at, pointer, element_bytes(type), mask, is_write);
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

  // As many elements, one behind the other, as the mask has ones.
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
    function_.getContext().diagnose(
        llvm::DiagnosticInfoUnsupported(function_, "perdure trace: " + what + " not recorded",
                                        at->getDebugLoc(), llvm::DS_Warning));
  }

  llvm::Function& function_;
  const llvm::DataLayout& layout_;
  const llvm::TargetLibraryInfo& library_;
  AccessEmitter emit_;
};

bool is_left_alone(const llvm::Function& function) {
  return function.isDeclaration() || function.hasAvailableExternallyLinkage() ||
         function.hasFnAttribute(llvm::Attribute::Naked) ||
         function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation) ||
         function.getName().starts_with("perdure_trace_");
}

// What the function promised of memory is no longer so.
void forget_promises(llvm::Function& function) {
  function.removeFnAttr(llvm::Attribute::Memory);
  function.removeFnAttr(llvm::Attribute::NoSync);
  for (llvm::Argument& argument : function.args()) argument.removeAttr(llvm::Attribute::Writable);
  function.setMemoryEffects(llvm::MemoryEffects::unknown());
}

// Calls carry such promises too.
void forget_promises_of_calls(Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || llvm::isa<IntrinsicInst>(call)) return;
  call->removeFnAttr(llvm::Attribute::Memory);
}

bool instrument(llvm::Function& function, const TraceSymbols& symbols,
                const llvm::TargetLibraryInfo& library) {
  std::vector<Instruction*> accesses;
  for (Instruction& instruction : llvm::instructions(function)) {
    forget_promises_of_calls(instruction);
    if (instruction.mayReadOrWriteMemory() || llvm::isa<llvm::CallBase>(instruction)) {
      accesses.push_back(&instruction);
    }
  }
  if (accesses.empty()) return false;
  forget_promises(function);
  Instrumenter instrumenter(function, symbols, library);
  for (Instruction* instruction : accesses) instrumenter.instruction(instruction);
  return true;
}

}  // namespace

llvm::PreservedAnalyses TracePass::run(llvm::Module& module,
                                       llvm::ModuleAnalysisManager& analyses) {
  // Once: a module that comes through the pipeline again (link-time optimisation) has it already.
  if (module.getNamedGlobal("perdure_trace_ways") != nullptr) {
    return llvm::PreservedAnalyses::all();
  }
  auto& of_functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  const TraceSymbols symbols(module);
  for (llvm::Function& function : module) {
    if (is_left_alone(function)) continue;
    instrument(function, symbols, of_functions.getResult<llvm::TargetLibraryAnalysis>(function));
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace perdure
