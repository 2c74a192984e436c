// SPDX-License-Identifier: BSD-3-Clause
//
// The probe, the team's body and the calls of ipv_parallel.hpp.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>

#include "ipv_hook.hpp"
#include "ipv_parallel.hpp"
#include "ipv_version.hpp"

namespace perdure::ipv {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

namespace {

llvm::Function* hook(llvm::Module& module, const char* name) {
  return module.getFunction(std::string("perdure_ipv.") + name);
}

Value* field(IRBuilder<>& builder, Value* boxes, size_t box, uint64_t offset) {
  return box_field(builder, boxes, box * box_bytes + offset);
}

Value* last_argument(llvm::Function& function) {
  return function.getArg(static_cast<unsigned>(function.arg_size() - 1));
}

// Makes the probe of the serial form.
class Probe {
 public:
  Probe(Analyses& analyses, const BoxProver& prover)
      : analyses_(analyses),
        prover_(prover),
        module_(*analyses.function.getParent()),
        expander_(analyses.evolution, module_.getDataLayout(), "box"),
        where_(prover.place()),
        boxes_(last_argument(analyses.function)) {}

  void run() {
    for (size_t number = 0; number < prover_.boxes().size(); ++number) announce(number);
    end_behind();
    llvm::removeUnreachableBlocks(analyses_.function);
  }

 private:
  static Value* apart(IRBuilder<>& builder, const BoxValues::Ends& one,
                      const BoxValues::Ends& other) {
    return builder.CreateOr(builder.CreateICmpUGE(one.low, other.high),
                            builder.CreateICmpULE(one.high, other.low));
  }

  void announce(size_t number) {
    const Box& box = prover_.boxes()[number];
    const BoxValues values = expand_box(expander_, box, where_);
    const auto writes = expand_ranges(expander_, box.writes, where_);
    const auto captured = expand_ranges(
        expander_, writes.empty() ? std::vector<Range>() : prover_.captured(), where_);
    IRBuilder<> builder(where_);
    Value* memory = field(builder, boxes_, number, object_field);
    describe_box(where_, values, memory);
    Value* total = builder.getInt64(1);
    for (const auto& dimension : values.dimensions) {
      total = builder.CreateMul(total, dimension.count);
    }
    Value* extent = builder.CreateCall(hook(module_, "box_extent"), {values.first, total});
    Value* low = builder.CreateExtractValue(extent, 0);
    Value* high = builder.CreateExtractValue(extent, 1);
    Value* wanted = builder.CreateAnd(values.wanted, builder.CreateIsNotNull(high));
    for (const BoxValues::Ends& other : values.others) {
      wanted = builder.CreateAnd(wanted, apart(builder, other, {low, high}));
    }
    for (const BoxValues::Ends& written : writes) {
      for (const BoxValues::Ends& variable : captured) {
        wanted = builder.CreateAnd(wanted, apart(builder, written, variable));
      }
    }
    builder.CreateCall(hook(module_, "box_open"), {memory, low, wanted});
  }

  // It returns there, and where the way to there is left.
  void end_behind() {
    BasicBlock* last = where_->getParent();
    llvm::SmallPtrSet<BasicBlock*, 16> kept{last};
    llvm::SmallVector<BasicBlock*, 16> open{last};
    while (!open.empty()) {
      for (BasicBlock* before : llvm::predecessors(open.pop_back_val())) {
        if (kept.insert(before).second) open.push_back(before);
      }
    }
    llvm::Function& function = analyses_.function;
    BasicBlock* out = BasicBlock::Create(function.getContext(), "out", &function);
    llvm::ReturnInst::Create(function.getContext(), out);
    if (!where_->isTerminator()) last->splitBasicBlock(where_);
    for (BasicBlock* block : kept) {
      Instruction* end = block->getTerminator();
      for (unsigned i = 0; i < end->getNumSuccessors(); ++i) {
        BasicBlock* next = end->getSuccessor(i);
        if (block != last && kept.contains(next)) continue;
        next->removePredecessor(block);
        end->setSuccessor(i, out);
      }
    }
  }

  Analyses& analyses_;
  const BoxProver& prover_;
  llvm::Module& module_;
  llvm::SCEVExpander expander_;
  Instruction* where_;
  Value* boxes_;
};

// The body that the team runs.
class TeamBody {
 public:
  TeamBody(Analyses& analyses, const std::vector<Site>& sites, const BoxProver& prover,
           llvm::ValueToValueMapTy& map)
      : analyses_(analyses),
        sites_(sites),
        prover_(prover),
        map_(map),
        module_(*analyses.function.getParent()),
        boxes_(last_argument(analyses.function)) {}

  void run() {
    load_answers();
    std::map<size_t, std::vector<size_t>> by_site;
    for (size_t box = 0; box < prover_.boxes().size(); ++box) {
      by_site[prover_.boxes()[box].member.site].push_back(box);
    }
    std::vector<RowLoop> loops;
    for (const auto& [site, boxes] : by_site) {
      if (sites_[site].loop != nullptr) {
        loops.push_back(row_loop(boxes));
      } else {
        IRBuilder<> builder(now(sites_[site].intrinsic)->getNextNode());
        for (const size_t box : boxes) tell(builder, box, {}, builder.getFalse());
      }
    }
    for (const RowLoop& one : loops) version(one);
    for (Instruction& instruction : llvm::instructions(analyses_.function)) {
      if (llvm::isa<llvm::ReturnInst>(instruction)) leave(instruction);
    }
  }

 private:
  struct Part {
    Value* first = nullptr;
    Value* bytes = nullptr;
  };
  // One loop, its rows, by box, and what they are in it.
  struct RowLoop {
    Loop* loop = nullptr;
    std::vector<size_t> boxes;
    std::vector<Row> rows;
    std::vector<Part> parts;
  };

  // Of an instruction of the serial form.
  Instruction* now(const Instruction* of_form) {
    return llvm::cast<Instruction>(static_cast<Value*>(map_[prover_.origin(of_form)]));
  }

  void load_answers() {
    IRBuilder<> builder(&*analyses_.function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    for (size_t box = 0; box < prover_.boxes().size(); ++box) {
      load_.push_back(
          builder.CreateLoad(builder.getInt64Ty(), field(builder, boxes_, box, load_field)));
      past_cache_.push_back(
          builder.CreateLoad(builder.getInt64Ty(), field(builder, boxes_, box, past_cache_field)));
    }
  }

  Row row_now(const Row& of_form) {
    Row row = of_form;
    for (auto* accesses : {&row.stores, &row.loads_before, &row.loads_behind}) {
      for (Access& access : *accesses) access.at = now(access.at);
    }
    return row;
  }

  // What the thread's iterations store to, in front of the loop; nothing if that is not known.
  Part part(Loop* loop, const Row& row) {
    llvm::ScalarEvolution& evolution = analyses_.evolution;
    const auto* address =
        llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(row.stores.front().pointer()));
    const SCEV* times = evolution.getBackedgeTakenCount(loop);
    if (address == nullptr || address->getLoop() != loop || row.step <= 0 ||
        llvm::isa<llvm::SCEVCouldNotCompute>(times) ||
        evolution.getTypeSizeInBits(times->getType()) > 64) {
      return {};
    }
    llvm::Type* word = llvm::Type::getInt64Ty(analyses_.function.getContext());
    times = evolution.getTruncateOrZeroExtend(times, word);
    const BasicBlock* block = row.stores.front().at->getParent();
    const BasicBlock* exiting = loop->getExitingBlock();
    if (exiting == block || !analyses_.dominators.dominates(exiting, block)) {
      times = evolution.getAddExpr(times, evolution.getOne(word));
    }
    const SCEV* bytes =
        evolution.getMulExpr(times, evolution.getConstant(word, static_cast<uint64_t>(row.step)));
    Instruction* where = loop->getLoopPreheader()->getTerminator();
    llvm::SCEVExpander expander(evolution, module_.getDataLayout(), "part");
    if (!expander.isSafeToExpandAt(address->getStart(), where) ||
        !expander.isSafeToExpandAt(bytes, where)) {
      return {};
    }
    Value* first =
        expander.expandCodeFor(address->getStart(), address->getStart()->getType(), where);
    return {first, expander.expandCodeFor(bytes, word, where)};
  }

  RowLoop row_loop(const std::vector<size_t>& boxes) {
    RowLoop found;
    found.boxes = boxes;
    for (const size_t box : boxes) {
      const Member& member = prover_.boxes()[box].member;
      found.rows.push_back(row_now(sites_[member.site].rows[member.row]));
    }
    found.loop = analyses_.loops.getLoopFor(found.rows.front().stores.front().at->getParent());
    for (const Row& row : found.rows) found.parts.push_back(part(found.loop, row));
    return found;
  }

  void version(const RowLoop& of) {
    std::vector<VersionedRow> versioned;
    for (size_t i = 0; i < of.boxes.size(); ++i) {
      versioned.push_back(
          {&of.rows[i], of.parts[i].first, load_[of.boxes[i]], past_cache_[of.boxes[i]]});
    }
    llvm::formLCSSARecursively(*of.loop, analyses_.dominators, &analyses_.loops, nullptr);
    // All versions come to the exit block that the loop has now; later, to have one of its own.
    IRBuilder<> builder(&*of.loop->getExitBlock()->getFirstInsertionPt());
    std::vector<llvm::CallInst*> told;
    for (size_t i = 0; i < of.boxes.size(); ++i) {
      told.push_back(tell(builder, of.boxes[i], of.parts[i], builder.getFalse()));
    }
    const std::vector<Value*> past_cache = version_loop(analyses_, of.loop, versioned);
    for (size_t i = 0; i < told.size(); ++i) {
      if (past_cache[i] != nullptr) told[i]->setArgOperand(4, past_cache[i]);
    }
  }

  llvm::CallInst* tell(IRBuilder<>& builder, size_t box, Part part, Value* taken) {
    if (part.first == nullptr) {
      part = {llvm::ConstantPointerNull::get(builder.getPtrTy()), builder.getInt64(0)};
    }
    return builder.CreateCall(hook(module_, "box_row"),
                              {field(builder, boxes_, box, object_field), past_cache_[box],
                               part.first, part.bytes, taken});
  }

  void leave(Instruction& end) {
    IRBuilder<> builder(&end);
    Value* any = builder.getInt64(0);
    for (Value* one : past_cache_) any = builder.CreateOr(any, one);
    builder.CreateCall(hook(module_, "box_leave"), {any});
  }

  Analyses& analyses_;
  const std::vector<Site>& sites_;
  const BoxProver& prover_;
  llvm::ValueToValueMapTy& map_;
  llvm::Module& module_;
  Value* boxes_;
  std::vector<Value*> load_, past_cache_;
};

// A call of a function with a place needs one.
llvm::DebugLoc place_of_call(const llvm::CallInst& call) {
  if (llvm::DebugLoc known = call.getStableDebugLoc()) return known;
  llvm::DISubprogram* scope = call.getFunction()->getSubprogram();
  return scope == nullptr ? llvm::DebugLoc()
                          : llvm::DebugLoc(llvm::DILocation::get(call.getContext(), 0, 0, scope));
}

// The probe before the call of the library, the team's body in it, and the ends after it.
void call_with_boxes(llvm::CallInst* fork, llvm::Function& probe, llvm::Function& team,
                     size_t count) {
  constexpr unsigned fixed = 3;
  llvm::Module& module = *probe.getParent();
  BasicBlock& entry = fork->getFunction()->getEntryBlock();
  IRBuilder<> on_entry(&*entry.getFirstInsertionPt());
  llvm::Type* words = llvm::ArrayType::get(on_entry.getInt64Ty(), count * box_bytes / 8);
  Value* boxes = on_entry.CreateAlloca(words, nullptr, "boxes");
  Value* thread = on_entry.CreateAlloca(on_entry.getInt32Ty(), nullptr, "no_thread");
  IRBuilder<> builder(fork);
  builder.SetCurrentDebugLocation(place_of_call(*fork));
  builder.CreateStore(builder.getInt32(0), thread);
  for (size_t box = 0; box < count; ++box) {
    for (const uint64_t offset : {object_field, load_field, past_cache_field, through_field}) {
      builder.CreateStore(builder.getInt64(0), field(builder, boxes, box, offset));
    }
  }
  llvm::SmallVector<Value*, 16> to_probe{thread, thread};
  llvm::SmallVector<Value*, 16> to_team{fork->getArgOperand(0),
                                        builder.getInt32(fork->arg_size() - fixed + 1), &team};
  for (unsigned i = fixed; i < fork->arg_size(); ++i) {
    to_probe.push_back(fork->getArgOperand(i));
    to_team.push_back(fork->getArgOperand(i));
  }
  to_probe.push_back(boxes);
  to_team.push_back(boxes);
  builder.CreateCall(&probe, to_probe);
  auto* with_boxes = builder.CreateCall(fork->getFunctionType(), fork->getCalledOperand(), to_team);
  with_boxes->setCallingConv(fork->getCallingConv());
  with_boxes->setAttributes(llvm::AttributeList::get(
      fork->getContext(), llvm::AttributeList::FunctionIndex,
      llvm::AttrBuilder(fork->getContext(), fork->getAttributes().getFnAttrs())));
  for (size_t box = 0; box < count; ++box) {
    builder.CreateCall(hook(module, "box_close"), {field(builder, boxes, box, object_field)});
  }
  fork->eraseFromParent();
}

}  // namespace

void emit_boxes(const ParallelBody& body, Analyses& of_form, const std::vector<Site>& sites,
                const BoxProver& prover, Analyses& of_team, llvm::ValueToValueMapTy& to_team) {
  TeamBody(of_team, sites, prover, to_team).run();
  Probe(of_form, prover).run();
  const size_t count = prover.boxes().size();
  for (llvm::CallInst* fork : body.forks) {
    call_with_boxes(fork, of_form.function, of_team.function, count);
  }
}

}  // namespace perdure::ipv
