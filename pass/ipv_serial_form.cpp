// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_serial_form.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace perdure::ipv {

using llvm::CallInst;
using llvm::Function;
using llvm::Instruction;
using llvm::StringRef;

namespace {

// __kmpc_for_static_init_…(place, thread, schedule, last, lower, upper, stride, step, chunk)
constexpr unsigned schedule_argument = 2;
constexpr unsigned last_argument = 3;
constexpr unsigned stride_argument = 6;
// Of a loop, one piece for each thread; beside bits that speak of the order of pieces.
constexpr uint64_t schedule_static = 34;
constexpr uint64_t schedule_bits = uint64_t{3} << 29;

StringRef name_of(const CallInst& call) {
  const Function* callee = call.getCalledFunction();
  return callee == nullptr ? "" : callee->getName();
}

const char* const thread_number_is_used = "it depends on which thread runs it";

bool is_reduction(StringRef name) {
  return name == "__kmpc_reduce" || name == "__kmpc_reduce_nowait";
}

// They return nothing that the program sees, and touch none of its memory.
bool is_without_effect(StringRef name) {
  return name == "__kmpc_for_static_fini" || name == "__kmpc_barrier" ||
         name == "__kmpc_end_reduce" || name == "__kmpc_end_reduce_nowait";
}

// What says by itself which thread runs it; null: nothing does.
const char* thread_dependence(const Instruction& instruction) {
  const char* const thread_local_variable = "it uses a variable of each thread";
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address) {
      return thread_local_variable;
    }
  }
  for (const llvm::Use& operand : instruction.operands()) {
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(operand->stripPointerCasts());
    if (global != nullptr && global->isThreadLocal()) return thread_local_variable;
  }
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && call->isInlineAsm() ? "it contains inline assembly" : nullptr;
}

class Maker {
 public:
  Maker(Function& body, SerialForm& form) : body_(body), form_(form) {}

  std::string run() {
    for (Instruction& instruction : llvm::instructions(body_)) {
      if (const char* why = thread_dependence(instruction)) return why;
      if (auto* call = llvm::dyn_cast<CallInst>(&instruction)) {
        const std::string why = look_at(*call);
        if (!why.empty()) return why;
      }
    }
    if (form_.share == nullptr) return "no loop in it is shared out";
    if (form_.ends.empty()) return "the end of its loop was not found";
    mark_share();
    form_.function = copy_with_team(body_, ".serial", form_.map);
    const std::string why = serialise();
    if (why.empty()) return why;
    form_.map.clear();
    form_.function->eraseFromParent();
    form_.function = nullptr;
    return why;
  }

 private:
  std::string look_at(CallInst& call) {
    const StringRef name = name_of(call);
    if (name.starts_with("__kmpc_dispatch_init")) return "its loop is shared out as it runs";
    if (name.starts_with("__kmpc_for_static_fini")) form_.ends.push_back(&call);
    if (!name.starts_with("__kmpc_for_static_init")) {
      const bool known = !name.starts_with("__kmpc_") || is_reduction(name) ||
                         is_without_effect(name) || name == "__kmpc_global_thread_num";
      return known ? "" : "it calls " + name.str();
    }
    if (form_.share != nullptr) return "several loops in it are shared out";
    form_.share = &call;
    const auto* schedule = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(schedule_argument));
    if (schedule == nullptr || (schedule->getZExtValue() & ~schedule_bits) != schedule_static) {
      return "its loop is shared out in pieces of a given size";
    }
    return "";
  }

  // What is loaded from where the library says which iterations a thread has, and what follows.
  void mark_share() {
    llvm::SmallVector<const llvm::Value*, 32> open;
    for (unsigned argument = last_argument; argument <= stride_argument; ++argument) {
      for (const llvm::User* user : form_.share->getArgOperand(argument)->users()) {
        if (llvm::isa<llvm::LoadInst>(user)) open.push_back(user);
      }
    }
    while (!open.empty()) {
      const llvm::Value* value = open.pop_back_val();
      if (!form_.of_share.insert(value).second) continue;
      for (const llvm::User* user : value->users()) {
        if (llvm::isa<Instruction>(user)) open.push_back(user);
      }
    }
  }

  std::string serialise() {
    Function& function = *form_.function;
    std::vector<CallInst*> calls;
    for (Instruction& instruction : llvm::instructions(function)) {
      if (auto* call = llvm::dyn_cast<CallInst>(&instruction)) calls.push_back(call);
    }
    std::vector<CallInst*> numbers;
    for (CallInst* call : calls) {
      if (name_of(*call) == "__kmpc_global_thread_num") {
        numbers.push_back(call);
      } else {
        take_away(*call);
      }
    }
    for (CallInst* call : numbers) {
      if (!call->use_empty()) return thread_number_is_used;
      call->eraseFromParent();
    }
    llvm::removeUnreachableBlocks(function);
    for (unsigned parameter = 0; parameter < 2; ++parameter) {
      const std::string why = forget_thread(*function.getArg(parameter));
      if (!why.empty()) return why;
    }
    promote(function);
    load_captured(function);
    split_at_intrinsics(function);
    return "";
  }

  // The bounds that the library is handed are those of the whole loop. Of a reduction, what is
  // left is what the thread does that is the only one.
  static void take_away(CallInst& call) {
    const StringRef name = name_of(call);
    if (is_reduction(name)) {
      llvm::Constant* alone = llvm::ConstantInt::get(call.getType(), 1);
      const llvm::SmallVector<llvm::User*, 4> users(call.users());
      call.replaceAllUsesWith(alone);
      for (llvm::User* user : users) {
        if (auto* branch = llvm::dyn_cast<llvm::SwitchInst>(user)) {
          llvm::ConstantFoldTerminator(branch->getParent());
        }
      }
      call.eraseFromParent();
    } else if (is_without_effect(name) || name.starts_with("__kmpc_for_static_init")) {
      if (call.use_empty()) call.eraseFromParent();
    }
  }

  static std::string forget_thread(llvm::Argument& number) {
    const llvm::SmallVector<llvm::User*, 8> users(number.users());
    for (llvm::User* user : users) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(user);
      if (load == nullptr || !load->use_empty()) return thread_number_is_used;
      load->eraseFromParent();
    }
    return "";
  }

  static void promote(Function& function) {
    std::vector<llvm::AllocaInst*> variables;
    for (Instruction& instruction : llvm::instructions(function)) {
      auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
      if (variable != nullptr && llvm::isAllocaPromotable(variable)) variables.push_back(variable);
    }
    llvm::DominatorTree dominators(function);
    if (!variables.empty()) llvm::PromoteMemToReg(variables, dominators);
  }

  // Bytes of a variable that the body has by reference.
  struct Place {
    llvm::Argument* variable = nullptr;
    uint64_t offset = 0;
    llvm::Type* type = nullptr;
    uint64_t bytes = 0;
    bool operator==(const Place& other) const {
      return variable == other.variable && offset == other.offset && type == other.type;
    }
    bool overlaps(const Place& other) const {
      return variable == other.variable && offset < other.offset + other.bytes &&
             other.offset < offset + bytes;
    }
  };

  // Without a variable if that is not what is accessed.
  static Place place_of(const llvm::DataLayout& layout, llvm::Value* pointer, llvm::Type* type) {
    llvm::APInt offset(64, 0);
    auto* variable = llvm::dyn_cast<llvm::Argument>(
        pointer->stripAndAccumulateConstantOffsets(layout, offset, true));
    const llvm::TypeSize bytes = layout.getTypeStoreSize(type);
    if (variable == nullptr || bytes.isScalable() || offset.isNegative() ||
        offset.getZExtValue() + bytes.getFixedValue() > variable->getDereferenceableBytes()) {
      return {};
    }
    return {variable, offset.getZExtValue(), type, bytes.getFixedValue()};
  }

  struct Loads {
    Place place;
    std::vector<llvm::LoadInst*> all;
    bool in_loop = false;
  };

  static std::vector<Loads> loads_of_captured(Function& function) {
    const llvm::DataLayout& layout = function.getParent()->getDataLayout();
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    std::vector<Loads> found;
    std::vector<Place> stored;
    for (Instruction& instruction : llvm::instructions(function)) {
      if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        stored.push_back(
            place_of(layout, store->getPointerOperand(), store->getValueOperand()->getType()));
      }
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || !load->isSimple()) continue;
      const Place place = place_of(layout, load->getPointerOperand(), load->getType());
      if (place.variable == nullptr) continue;
      auto same = llvm::find_if(found, [&](const Loads& one) { return one.place == place; });
      if (same == found.end()) same = found.insert(found.end(), Loads{place, {}, false});
      same->all.push_back(load);
      same->in_loop |= loops.getLoopFor(load->getParent()) != nullptr;
    }
    llvm::erase_if(found, [&](const Loads& one) {  // a reduction's result, for one
      return !one.in_loop ||
             llvm::any_of(stored, [&](const Place& place) { return place.overlaps(one.place); });
    });
    return found;
  }

  // Where LLVM did not see that the loop leaves them as they are.
  void load_captured(Function& function) {
    const std::vector<Loads> found = loads_of_captured(function);
    llvm::BasicBlock* entry = &function.getEntryBlock();
    llvm::SplitBlock(entry, &*entry->getFirstNonPHIOrDbgOrAlloca());
    llvm::IRBuilder<> builder(entry->getTerminator());
    for (const auto& [place, loads, in_loop] : found) {
      llvm::Value* pointer =
          builder.CreateConstGEP1_64(builder.getInt8Ty(), place.variable, place.offset);
      llvm::LoadInst* first = builder.CreateAlignedLoad(place.type, pointer, llvm::Align(1));
      first->setDebugLoc(loads.front()->getDebugLoc());
      form_.captured.push_back({pointer, place.bytes});
      for (llvm::LoadInst* load : loads) {
        load->replaceAllUsesWith(first);
        load->eraseFromParent();
      }
    }
  }

  // So that what is known in front of them can be computed at the end of a block.
  static void split_at_intrinsics(Function& function) {
    std::vector<Instruction*> intrinsics;
    for (Instruction& instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::MemIntrinsic>(instruction)) intrinsics.push_back(&instruction);
    }
    for (Instruction* intrinsic : intrinsics) llvm::SplitBlock(intrinsic->getParent(), intrinsic);
  }

  Function& body_;
  SerialForm& form_;
};

}  // namespace

Function* copy_with_team(Function& body, StringRef suffix, llvm::ValueToValueMapTy& map) {
  llvm::SmallVector<llvm::Type*, 8> types(body.getFunctionType()->params());
  types.push_back(llvm::PointerType::getUnqual(body.getContext()));
  auto* type = llvm::FunctionType::get(body.getReturnType(), types, false);
  Function* copy = Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                    body.getName() + suffix, body.getParent());
  for (llvm::Argument& argument : body.args()) {
    copy->getArg(argument.getArgNo())->setName(argument.getName());
    map[&argument] = copy->getArg(argument.getArgNo());
  }
  llvm::SmallVector<llvm::ReturnInst*, 4> returns;
  llvm::CloneFunctionInto(copy, &body, map, llvm::CloneFunctionChangeType::LocalChangesOnly,
                          returns);
  copy->setComdat(nullptr);
  copy->removeFnAttr(llvm::Attribute::AlwaysInline);  // Clang's, for where a region is serialised
  return copy;
}

void make_serial_form(Function& body, SerialForm& form) {
  form.why = Maker(body, form).run();
}

}  // namespace perdure::ipv
