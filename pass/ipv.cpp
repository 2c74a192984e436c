// SPDX-License-Identifier: BSD-3-Clause
#include "ipv.hpp"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include "ipv_explain.hpp"
#include "ipv_hook.hpp"
#include "ipv_module.hpp"
#include "ipv_parallel.hpp"

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
    "it calls no function perdure_ipv_…, and nothing in it is marked with PERDURE_IPV_NEST or "
    "PERDURE_IPV_ARRAY; --ipv=all transforms it all the same";

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
    if (function.isDeclaration() || ipv::is_out_of_line(function)) continue;
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
    clean_.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    clean_.addPass(llvm::EarlyCSEPass(true));
    clean_.addPass(llvm::SimplifyCFGPass());
    changed_ = ipv::place_arrays(module, all);
    changed_ |= ipv::announce_kernel_writers(module);
  }

  bool run() {
    const std::vector<ipv::ParallelBody> bodies = ipv::parallel_bodies(module_);
    std::vector<Function*> functions;
    for (Function& function : module_) {
      if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage()) {
        functions.push_back(&function);
      }
    }
    std::vector<Function*> transformed;
    for (const ipv::ParallelBody& body : bodies) parallel(body, transformed);
    for (Function* function : functions) {
      if (told_.contains(function) || !transform(*function)) continue;
      transformed.push_back(function);
    }
    if (transformed.empty()) return changed_;
    // Nor may a caller's pointers bring such promises along, when the linker optimises.
    for (Function* function : transformed) {
      if (!function->hasFnAttribute(llvm::Attribute::AlwaysInline)) {
        function->addFnAttr(llvm::Attribute::NoInline);
      }
    }
    ipv::inline_hook_functions(module_);
    forget_promises(module_);
    for (Function* function : transformed) {
      managers_.invalidate(*function, llvm::PreservedAnalyses::none());
      managers_.invalidate(*function, clean_.run(*function, managers_));
    }
    return true;
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

  void forget(Function& function) {
    managers_.clear(function, function.getName());
    function.eraseFromParent();
  }

  void link_once() {
    if (!linked_) ipv::link_hook_functions(module_);
    linked_ = true;
  }

  void parallel(const ipv::ParallelBody& body, std::vector<Function*>& transformed) {
    if (body.body->hasFnAttribute(llvm::Attribute::OptimizeNone)) return;
    simplify(*body.body);
    changed_ = true;
    told_.insert(body.body);
    ipv::SerialForm form;
    ipv::make_serial_form(*body.body, form);
    if (form.function == nullptr) {
      explanation_.left_alone(*body.body, form.why);
      return;
    }
    simplify(*form.function);
    if (boxes(body, form)) {
      transformed.push_back(form.function);
      transformed.push_back(team_);
      for (llvm::User* user : form.function->users()) {
        Function* caller = llvm::cast<llvm::CallBase>(user)->getFunction();
        managers_.invalidate(*caller, llvm::PreservedAnalyses::none());
      }
    } else {
      forget(*form.function);
    }
  }

  // Whether there are any.
  bool boxes(const ipv::ParallelBody& body, ipv::SerialForm& form) {
    ipv::Analyses of_form = analyses_of(*form.function);
    ipv::Finder finder(of_form, false);
    std::vector<ipv::Site> sites = finder.sites();
    ipv::BoxProver prover(of_form, finder, sites, form);
    prover.run();
    explanation_.parallel(*body.body, finder, sites, prover);
    if (prover.boxes().empty()) return false;
    link_once();
    llvm::ValueToValueMapTy to_team;
    team_ = ipv::copy_with_team(*body.body, ".team", to_team);
    ipv::Analyses of_team = analyses_of(*team_);
    ipv::emit_boxes(body, of_form, sites, prover, of_team, to_team);
    return true;
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
    std::vector<ipv::Site> sites = finder.sites();
    ipv::Prover prover(analyses, finder, sites);
    prover.run();
    explanation_.function(function, finder, sites, prover);
    if (prover.slots.empty()) return false;
    link_once();
    ipv::emit_hooks(analyses, finder, sites, prover.slots);
    return true;
  }

  Module& module_;
  llvm::FunctionAnalysisManager& managers_;
  ipv::Explanation& explanation_;
  llvm::FunctionPassManager simplify_, clean_;
  llvm::SmallPtrSet<const Function*, 8> told_;  // parallel bodies, which are not transformed
  Function* team_ = nullptr;
  bool changed_ = false;
  bool linked_ = false;
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
