// SPDX-License-Identifier: BSD-3-Clause
//
// What calls do to memory: of functions of the C library that are known here, and of functions of
// the module whose code says it. Whatever is not understood may be anything.
//
// A function of the module is looked through with all that it calls. What it touches is its own
// variables, static ones, which are compared with the object as a whole, and what its arguments
// lead to. None of what is taken here throws, ends the program or frees memory.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "ipv_find.hpp"

namespace perdure::ipv {

using llvm::CallBase;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

namespace {

constexpr unsigned depth_max = 6;
constexpr unsigned instructions_max = 1000;

struct KnownFunction {
  const char* name;
  int stream;  // an argument that is the library's own, or -1
};

// Clocks and prints, by names that no program gives to functions of its own. What their pointers
// lead to they may read and write, and nothing else of the program.
const KnownFunction known_functions[] = {{"clock_gettime", -1},
                                         {"gettimeofday", -1},
                                         {"getrusage", -1},
                                         {"omp_get_wtime", -1},
                                         {"omp_get_wtick", -1},
                                         {"omp_get_wtime_", -1},
                                         {"omp_get_thread_num", -1},
                                         {"omp_get_num_threads", -1},
                                         {"MPI_Wtime", -1},
                                         {"MPI_Wtick", -1},
                                         {"mpi_wtime_", -1},
                                         {"printf", -1},
                                         {"puts", -1},
                                         {"putchar", -1},
                                         {"snprintf", -1},
                                         {"sprintf", -1},
                                         {"fprintf", 0},
                                         {"fputs", 1},
                                         {"fputc", 1},
                                         {"putc", 1},
                                         {"fwrite", 3},
                                         {"fflush", 0}};

const KnownFunction* known(const CallBase& call) {
  const auto* callee = llvm::dyn_cast<Function>(call.getCalledOperand());
  if (callee == nullptr || !callee->isDeclaration()) return nullptr;
  for (const KnownFunction& function : known_functions) {
    if (callee->getName() == function.name) return &function;
  }
  return nullptr;
}

// The pointers that a call of a known function is given.
std::vector<Value*> pointers_of(const CallBase& call, const KnownFunction& function) {
  std::vector<Value*> found;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    Value* argument = call.getArgOperand(i);
    const bool is_memory =
        argument->getType()->isPointerTy() && !llvm::isa<llvm::ConstantPointerNull>(argument);
    if (!is_memory || static_cast<int>(i) == function.stream) continue;
    found.push_back(argument);
  }
  return found;
}

// How many bytes a variable has; 0: not known.
uint64_t bytes_of(const Value* variable, const llvm::DataLayout& layout) {
  if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(variable)) {
    if (global->isThreadLocal() || !global->getValueType()->isSized()) return 0;
    return layout.getTypeAllocSize(global->getValueType()).getFixedValue();
  }
  const auto* local = llvm::dyn_cast<llvm::AllocaInst>(variable);
  if (local == nullptr || !local->isStaticAlloca()) return 0;
  const auto bytes = local->getAllocationSize(layout);
  return bytes && !bytes->isScalable() ? bytes->getFixedValue() : 0;
}

bool is_constant_variable(const Value* value) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(value);
  return global != nullptr && global->isConstant();
}

llvm::SmallVector<const Value*, 4> objects_under(const Value* pointer) {
  llvm::SmallVector<const Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);  // however deep
  return objects;
}

class Summariser {
 public:
  explicit Summariser(const llvm::TargetLibraryInfo& library) : library_(library) {}

  CallSummary of(const Function& function) {
    summary_ = {};
    count_ = 0;
    (void)walk(function, 0);
    return std::move(summary_);
  }

 private:
  bool refuse(const std::string& why) {
    if (summary_.against.empty()) summary_.against = why;
    return false;
  }

  // `arguments` of inner functions are followed to those of the outermost one.
  bool walk(const Function& function, unsigned depth) {
    if (function.isDeclaration() || function.isInterposable() || depth > depth_max ||
        function.hasFnAttribute(llvm::Attribute::Naked) || function.isPresplitCoroutine()) {
      return refuse("whose code is not known");
    }
    if (!inside_.insert(&function).second) return refuse("which calls itself");
    bool fine = true;
    for (const Instruction& instruction : llvm::instructions(function)) {
      fine = ++count_ <= instructions_max ? look_at(instruction, depth) : refuse("which is large");
      if (!fine) break;
    }
    inside_.erase(&function);
    return fine;
  }

  bool look_at(const Instruction& instruction, unsigned depth) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      return load->isSimple() ? touch(load->getPointerOperand(), false)
                              : refuse("which has a volatile or atomic access");
    }
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      return store->isSimple() ? touch(store->getPointerOperand(), true)
                               : refuse("which has a volatile or atomic access");
    }
    if (const auto* call = llvm::dyn_cast<CallBase>(&instruction)) return call_in(*call, depth);
    if (instruction.mayReadOrWriteMemory()) return refuse("which has an access of another kind");
    return instruction.mayThrow() ? refuse("which may throw") : true;
  }

  bool call_in(const CallBase& call, unsigned depth) {
    if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
      if (intrinsic->isAssumeLikeIntrinsic()) return true;
    }
    if (llvm::isa<llvm::InvokeInst>(call) || call.hasOperandBundles()) {
      return refuse("which may throw");
    }
    if (const auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&call)) {
      if (memory->isVolatile()) return refuse("which has a volatile access");
      if (!touch(memory->getRawDest(), true)) return false;
      const auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(memory);
      return transfer == nullptr || touch(transfer->getRawSource(), false);
    }
    const bool returns = call.doesNotThrow() && call.hasFnAttr(llvm::Attribute::WillReturn);
    if (call.doesNotAccessMemory() && returns) return true;
    if (is_mathematics(call, library_)) return true;
    if (const KnownFunction* function = known(call)) {
      for (const Value* pointer : pointers_of(call, *function)) {
        if (!touch(pointer, true)) return false;
      }
      return true;
    }
    const auto* callee = llvm::dyn_cast<Function>(call.getCalledOperand());
    if (callee == nullptr || callee->isDeclaration() || call.arg_size() != callee->arg_size()) {
      return refuse("which calls " + name_of(call));
    }
    callers_.push_back(&call);
    const bool fine = walk(*callee, depth + 1);
    callers_.pop_back();
    return fine;
  }

  bool touch(const Value* pointer, bool writes) { return touch(pointer, writes, callers_.size()); }

  // `level` is how many calls are around the function of `pointer`.
  bool touch(const Value* pointer, bool writes, size_t level) {
    for (const Value* object : objects_under(pointer)) {
      if (llvm::isa<llvm::AllocaInst>(object) || is_constant_variable(object)) continue;
      if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object); argument && level > 0) {
        const Value* given = callers_[level - 1]->getArgOperand(argument->getArgNo());
        if (!touch(given, writes, level - 1)) return false;
      } else if (llvm::isa<llvm::Argument>(object) || is_static(object)) {
        summary_.touched.push_back({const_cast<Value*>(object), writes});
      } else {
        return refuse("which accesses memory that it finds on its way");
      }
    }
    return true;
  }

  static bool is_static(const Value* object) {
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
    return global != nullptr && !global->isThreadLocal() && global->getAddressSpace() == 0;
  }

  const llvm::TargetLibraryInfo& library_;
  CallSummary summary_;
  llvm::SmallPtrSet<const Function*, 8> inside_;
  std::vector<const CallBase*> callers_;
  unsigned count_ = 0;
};

}  // namespace

// Of variables with a known size all of it, as it can be compared with an object.
void Finder::touch(CallBase& call, Value* pointer, bool writes, std::vector<Access>& accesses) {
  const llvm::DataLayout& layout = analyses_.function.getParent()->getDataLayout();
  const auto objects = objects_under(pointer);
  const bool known = llvm::all_of(objects, [&](const Value* object) {
    return is_constant_variable(object) || bytes_of(object, layout) != 0;
  });
  if (!known) {
    accesses.push_back({&call, 0, nullptr, writes, pointer});
    return;
  }
  for (const Value* object : objects) {
    if (is_constant_variable(object)) continue;
    accesses.push_back(
        {&call, 0, word(bytes_of(object, layout)), writes, const_cast<Value*>(object)});
  }
}

std::optional<Refusal> Finder::call_effects(CallBase& call, std::vector<Access>& accesses) {
  const auto opaque = [&](const std::string& why) {
    return Refusal{"S4", &call, "calls " + name_of(call) + why};
  };
  if (!takes_calls_) return opaque("");
  if (const KnownFunction* function = known(call)) {
    for (Value* pointer : pointers_of(call, *function)) touch(call, pointer, true, accesses);
    return std::nullopt;
  }
  const auto* callee = llvm::dyn_cast<Function>(call.getCalledOperand());
  if (callee == nullptr || callee->isDeclaration() || callee == &analyses_.function ||
      call.arg_size() != callee->arg_size()) {
    return opaque("");
  }
  const auto [place, is_new] = summaries_.try_emplace(callee);
  if (is_new) place->second = Summariser(analyses_.functions).of(*callee);
  const CallSummary& summary = place->second;
  if (!summary.against.empty()) return opaque(", " + summary.against);
  for (const CallSummary::Touched& touched : summary.touched) {
    const auto* argument = llvm::dyn_cast<llvm::Argument>(touched.what);
    Value* pointer = argument == nullptr ? touched.what : call.getArgOperand(argument->getArgNo());
    touch(call, pointer, touched.writes, accesses);
  }
  return std::nullopt;
}

}  // namespace perdure::ipv
