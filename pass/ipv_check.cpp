// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check.hpp"

#include <llvm/ADT/StringSet.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/raw_ostream.h>

#include "accesses.hpp"
#include "ipv_check_sites.hpp"

namespace perdure {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

namespace {

constexpr llvm::StringRef checker_prefix = "perdure_ipv_check_";
constexpr llvm::StringRef done_flag = "perdure-ipv-check";

struct CheckSymbols {
  explicit CheckSymbols(llvm::Module& module) {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* word = llvm::Type::getInt64Ty(context);
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    llvm::Type* nothing = llvm::Type::getVoidTy(context);
    const auto name = [](const char* what) { return (checker_prefix + what).str(); };
    access[0] = module.getOrInsertFunction(name("load"), nothing, word, word, pointer);
    access[1] = module.getOrInsertFunction(name("store"), nothing, word, word, pointer);
    lanes[0] = module.getOrInsertFunction(name("load_lanes"), nothing, word, word, word, pointer);
    lanes[1] = module.getOrInsertFunction(name("store_lanes"), nothing, word, word, word, pointer);
    copy = module.getOrInsertFunction(name("copy"), nothing, word, word, word, pointer);
    here = module.getOrInsertFunction(name("here"), nothing, pointer);
    assign = module.getOrInsertFunction(name("assign"), nothing, pointer, pointer, pointer);
    for (llvm::FunctionCallee callee :
         {access[0], access[1], lanes[0], lanes[1], copy, here, assign}) {
      if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
        function->setDoesNotThrow();
      }
    }
  }

  llvm::FunctionCallee access[2];  // load, store
  llvm::FunctionCallee lanes[2];   // load, store
  llvm::FunctionCallee copy;
  llvm::FunctionCallee here;
  llvm::FunctionCallee assign;
};

class CheckEmitter : public AccessSink {
 public:
  CheckEmitter(const CheckSymbols& symbols, SiteConstants& sites, const llvm::LoopInfo& loops)
      : symbols_(symbols), sites_(sites), loops_(loops) {}

  void access(Instruction* where, Value* address, uint64_t bytes, bool /*aligned*/,
              bool is_write) override {
    range(where, address, IRBuilder<>(where).getInt64(bytes), is_write);
  }

  void range(Instruction* where, Value* address, Value* bytes, bool is_write) override {
    if (is_out_of_reach(address)) return;
    IRBuilder<> builder(where);
    builder.CreateCall(symbols_.access[is_write ? 1 : 0],
                       {number(builder, address), word(builder, bytes), site(where, address)});
  }

  void copy(Instruction* where, Value* to, Value* from, Value* bytes) override {
    if (is_out_of_reach(to)) return range(where, from, bytes, false);
    if (is_out_of_reach(from)) return range(where, to, bytes, true);
    IRBuilder<> builder(where);
    builder.CreateCall(symbols_.copy, {number(builder, to), number(builder, from),
                                       word(builder, bytes), site(where)});
  }

  void lanes(Instruction* where, Value* address, uint64_t element_bytes, Value* bits,
             bool is_write) override {
    IRBuilder<> builder(where);
    builder.CreateCall(
        symbols_.lanes[is_write ? 1 : 0],
        {number(builder, address), builder.getInt64(element_bytes), bits, site(where)});
  }

  void here(Instruction* where) { IRBuilder<>(where).CreateCall(symbols_.here, {site(where)}); }

  void assign(llvm::CallBase* call) {
    IRBuilder<>(call).CreateCall(symbols_.assign,
                                 {call->getArgOperand(0), call->getArgOperand(1), site(call)});
  }

 private:
  llvm::Constant* site(Instruction* where, const Value* address = nullptr) {
    return sites_.site_of(*where, loops_, address);
  }

  static Value* number(IRBuilder<>& builder, Value* address) {
    if (!address->getType()->isPointerTy()) return address;
    return builder.CreatePtrToInt(address, builder.getInt64Ty());
  }

  static Value* word(IRBuilder<>& builder, Value* bytes) {
    return builder.CreateZExtOrTrunc(bytes, builder.getInt64Ty());
  }

  // Local variables whose address stays in the function, and constants. What instrumentation has
  // captured already was decided before.
  bool is_out_of_reach(Value* address) {
    if (!address->getType()->isPointerTy()) return false;
    const Value* base = llvm::getUnderlyingObject(address, 0);
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(base)) {
      return variable->isConstant();
    }
    if (!llvm::isa<llvm::AllocaInst>(base)) return false;
    const auto [place, is_new] = locals_.try_emplace(base, false);
    if (is_new) place->second = !llvm::PointerMayBeCaptured(base, true, true);
    return place->second;
  }

  const CheckSymbols& symbols_;
  SiteConstants& sites_;
  const llvm::LoopInfo& loops_;
  llvm::DenseMap<const Value*, bool> locals_;
};

// Of functions whose report needs a place.
bool is_hook(const Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || call->getCalledFunction() == nullptr) return false;
  const llvm::StringRef name = call->getCalledFunction()->getName();
  if (name == "perdure_flush_async") return true;
  return name.starts_with("perdure_ipv_") && !name.starts_with(checker_prefix);
}

constexpr llvm::StringRef fortran_prefix = "_FortranA";

// Functions of Flang's library that assign the array of their second descriptor to the first one's.
bool is_assignment(llvm::StringRef name) {
  return name.starts_with("_FortranAAssign") || name == "_FortranACopyInAssign" ||
         name == "_FortranACopyOutAssign";
}

// Those that access no array of the program, or only to print it or to read it in.
bool accesses_no_array(llvm::StringRef name) {
  static constexpr llvm::StringLiteral beginnings[] = {
      "io",          "Program", "Stop",        "Pause",   "FailImage",  "Exit",
      "Allocatable", "Pointer", "ReportFatal", "CpuTime", "SystemClock"};
  const llvm::StringRef rest = name.drop_front(fortran_prefix.size());
  return llvm::any_of(beginnings,
                      [rest](llvm::StringRef beginning) { return rest.starts_with(beginning); });
}

void fortran_call(llvm::CallBase* call, CheckEmitter& emitter, llvm::StringSet<>& warned) {
  const llvm::Function* callee = call->getCalledFunction();
  if (callee == nullptr || !callee->getName().starts_with(fortran_prefix)) return;
  const llvm::StringRef name = callee->getName();
  if (is_assignment(name)) return emitter.assign(call);
  if (accesses_no_array(name) || !warned.insert(name).second) return;
  // Flang shows no warnings of LLVM's diagnostics.
  const llvm::DebugLoc& where = call->getDebugLoc();
  if (where) llvm::errs() << where->getFilename() << ":" << where.getLine() << ": ";
  llvm::errs() << "warning: perdure ipv check: accesses of " << name << " are not recorded\n";
}

void instrument(llvm::Function& function, const CheckSymbols& symbols, SiteConstants& sites,
                llvm::StringSet<>& warned, llvm::FunctionAnalysisManager& analyses) {
  const std::vector<Instruction*> accesses = instructions_that_access(function);
  if (accesses.empty()) return;
  const auto& library = analyses.getResult<llvm::TargetLibraryAnalysis>(function);
  CheckEmitter emitter(symbols, sites, analyses.getResult<llvm::LoopAnalysis>(function));
  forget_promises(function);
  visit_accesses(function, accesses, library, "perdure ipv check", emitter);
  for (Instruction* instruction : accesses) {
    if (is_hook(*instruction)) emitter.here(instruction);
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(instruction)) {
      fortran_call(call, emitter, warned);
    }
  }
}

}  // namespace

llvm::PreservedAnalyses IpvCheckPass::run(llvm::Module& module,
                                          llvm::ModuleAnalysisManager& analyses) {
  // Once: a module that comes through the pipeline again (link-time optimisation) has it already.
  if (module.getModuleFlag(done_flag) != nullptr) return llvm::PreservedAnalyses::all();
  module.addModuleFlag(llvm::Module::Max, done_flag, 1);
  auto& of_functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  tell_globals(module);
  const CheckSymbols symbols(module);
  SiteConstants sites(module);
  llvm::StringSet<> warned;
  for (llvm::Function& function : module) {
    if (is_left_alone(function, checker_prefix)) continue;
    instrument(function, symbols, sites, warned, of_functions);
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace perdure
