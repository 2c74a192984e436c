// SPDX-License-Identifier: BSD-3-Clause
#include "ipv.hpp"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include "ipv_build.hpp"
#include "ipv_explain.hpp"
#include "ipv_hook.hpp"
#include "ipv_module.hpp"

namespace perdure {

using llvm::Function;
using llvm::Module;

namespace {

// Why the function as a whole is left alone; null: it is not.
const char* left_alone(Function& function) {
  if (function.hasFnAttribute(llvm::Attribute::OptimizeNone)) return "it is not optimised";
  if (function.hasFnAttribute(llvm::Attribute::Naked) || function.isPresplitCoroutine() ||
      function.callsFunctionThatReturnsTwice()) {
    return "it returns in ways of its own";
  }
  if (ipv::is_parallel_body(function)) return "it is the body of a parallel region";
  return nullptr;
}

constexpr llvm::StringLiteral why_unmarked =
    "it calls no function perdure_ipv_…, and nothing in it is marked with PERDURE_IPV_ARRAY; "
    "--ipv=all transforms it all the same";

bool is_irreducible(Function& function, const llvm::LoopInfo& loops) {
  using Order = llvm::ReversePostOrderTraversal<const Function*>;
  const Order order(&function);
  return llvm::containsIrreducibleCFG<const llvm::BasicBlock*, const Order, const llvm::LoopInfo>(
      order, loops);
}

// What was inferred of memory, and promised of pointers, holds no longer. `noalias` (restrict, and
// Fortran's arguments) would let accesses move across hooks that are not given their pointer: of
// another part of an object, into a nest in which it is not current.
void forget_promises(Module& module) {
  for (Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setMemoryEffects(llvm::MemoryEffects::unknown());
    function.removeFnAttr(llvm::Attribute::NoSync);
    function.removeFnAttr(llvm::Attribute::NoFree);
    function.removeFnAttr(llvm::Attribute::Speculatable);
    for (llvm::Argument& argument : function.args()) {
      for (const auto kind :
           {llvm::Attribute::NoAlias, llvm::Attribute::NoCapture, llvm::Attribute::ReadOnly,
            llvm::Attribute::WriteOnly, llvm::Attribute::ReadNone, llvm::Attribute::NoFree,
            llvm::Attribute::Writable, llvm::Attribute::Initializes}) {
        argument.removeAttr(kind);
      }
    }
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      const Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
      if (callee == nullptr || callee->isDeclaration()) continue;
      call->removeFnAttr(llvm::Attribute::Memory);
      for (unsigned i = 0; i < call->arg_size(); ++i) {
        for (const auto kind : {llvm::Attribute::NoCapture, llvm::Attribute::ReadOnly,
                                llvm::Attribute::WriteOnly, llvm::Attribute::ReadNone}) {
          call->removeParamAttr(i, kind);
        }
      }
    }
  }
}

class ModuleTransformer {
 public:
  ModuleTransformer(Module& module, llvm::FunctionAnalysisManager& analyses, bool all,
                    ipv::Explanation& explanation)
      : module_(module), managers_(analyses), explanation_(explanation) {
    simplify_.addPass(llvm::LoopSimplifyPass());
    simplify_.addPass(llvm::LCSSAPass());
    hash_ = ipv::hash_of(module);
    changed_ = ipv::place_arrays(module, all);
    changed_ |= ipv::announce_kernel_writers(module);
  }

  bool run() {
    std::vector<Function*> functions;
    for (Function& function : module_) {
      if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage()) {
        functions.push_back(&function);
      }
    }
    bool transformed = false;
    for (Function* function : functions) {
      if (!transform(*function)) continue;
      transformed = true;
      // Nor may a caller's pointers bring promises along, when the linker optimises.
      if (!function->hasFnAttribute(llvm::Attribute::AlwaysInline)) {
        function->addFnAttr(llvm::Attribute::NoInline);
      }
      managers_.invalidate(*function, llvm::PreservedAnalyses::none());
    }
    if (transformed) {
      forget_promises(module_);
      ipv::note_build(module_, hash_);
    }
    return changed_;
  }

 private:
  ipv::Analyses analyses_of(Function& function) {
    return {function, managers_.getResult<llvm::LoopAnalysis>(function),
            managers_.getResult<llvm::ScalarEvolutionAnalysis>(function),
            managers_.getResult<llvm::DominatorTreeAnalysis>(function),
            managers_.getResult<llvm::TargetLibraryAnalysis>(function)};
  }

  void simplify(Function& function) {
    managers_.invalidate(function, simplify_.run(function, managers_));
  }

  bool transform(Function& function) {
    if (const char* why = left_alone(function)) {
      explanation_.left_alone(function, why);
      return false;
    }
    if (managers_.getResult<llvm::LoopAnalysis>(function).empty()) return straight(function);
    changed_ = true;
    simplify(function);
    return nests(function);
  }

  // Without a loop there may be a memset of a whole object.
  bool straight(Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::MemIntrinsic>(instruction)) return nests(function);
    }
    return false;
  }

  bool nests(Function& function) {
    auto& loops = managers_.getResult<llvm::LoopAnalysis>(function);
    if (is_irreducible(function, loops)) {
      explanation_.left_alone(function, "it has jumps into loops");
      return false;
    }
    ipv::Analyses analyses = analyses_of(function);
    ipv::Finder finder(analyses);
    const std::vector<ipv::Site> sites = finder.sites();
    ipv::NestChooser chooser(analyses, finder, sites);
    chooser.run();
    explanation_.function(function, finder, chooser);
    if (chooser.boxes.empty()) return false;
    ipv::emit_hooks(analyses, chooser.boxes);
    changed_ = true;
    return true;
  }

  Module& module_;
  llvm::FunctionAnalysisManager& managers_;
  ipv::Explanation& explanation_;
  llvm::FunctionPassManager simplify_;
  std::string hash_;  // of the module as it came
  bool changed_ = false;
};

}  // namespace

llvm::PreservedAnalyses IpvPass::run(Module& module, llvm::ModuleAnalysisManager& analyses) {
  const llvm::DataLayout& layout = module.getDataLayout();
  if (!options_.all && !ipv::is_marked(module)) {
    // Not by a warning, which -Werror would make an error of.
    llvm::errs() << "perdure: --ipv changes nothing in " << module.getSourceFileName() << ": "
                 << why_unmarked << '\n';
    if (!options_.explain.empty()) {
      ipv::Explanation explanation(module);
      explanation.left_alone(why_unmarked);
      explanation.write(options_.explain);
    }
    return llvm::PreservedAnalyses::all();
  }
  if (layout.getPointerSizeInBits() != 64 || !layout.isLittleEndian()) {
    return llvm::PreservedAnalyses::all();
  }
  auto& of_functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  ipv::Explanation explanation(module);
  const bool changed = ModuleTransformer(module, of_functions, options_.all, explanation).run();
  if (!options_.explain.empty()) explanation.write(options_.explain);
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace perdure
