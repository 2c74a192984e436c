// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_hook.hpp"

#include "ipv_version.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>

namespace perdure::ipv {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Loop;
using llvm::Value;

namespace {

// A step has 32 bits at most: Finder::range().
constexpr uint64_t left_early_times_max = uint64_t{1} << 31;

// As ipv_hook_functions.cpp has it.
constexpr uint64_t slot_words = 2;
constexpr uint64_t slot_align = 16;

// A row as values in front of its site.
struct RowValues {
  size_t slot = 0;
  const Row* row = nullptr;
  Value* first = nullptr;  // pointer
  Value* bytes = nullptr;
  Value* load_difference = nullptr;
  Value* past_cache = nullptr;  // 64 bits: 1 if the runtime would have it so
  Value* announced = nullptr;   // 1 bit; of a row of which bytes are copied
  llvm::CallInst* end_hook = nullptr;
};

// In front of `where`, with its place in the source.
class HookBuilder : public IRBuilder<> {
 public:
  explicit HookBuilder(Instruction* where) : IRBuilder<>(where) {
    SetCurrentDebugLocation(where->getStableDebugLoc());
  }
};

class Emitter {
 public:
  Emitter(Analyses& analyses, Finder& finder, const std::vector<Site>& sites,
          const std::vector<Slot>& slots)
      : analyses_(analyses),
        finder_(finder),
        sites_(sites),
        slots_(slots),
        word_(llvm::Type::getInt64Ty(analyses.function.getContext())),
        expander_(analyses.evolution, analyses.function.getParent()->getDataLayout(), "ipv") {}

  void run() {
    make_slots();
    for (size_t site = 0; site < sites_.size(); ++site) expand_site(site);
    for (size_t slot = 0; slot < slots_.size(); ++slot) expand_guards(slot);
    for (size_t slot = 0; slot < slots_.size(); ++slot) expand_box_of(slot);
    for (size_t slot = 0; slot < slots_.size(); ++slot) emit_guards(slot);
    for (size_t slot = 0; slot < slots_.size(); ++slot) emit_box(slot);
    for (size_t slot = 0; slot < slots_.size(); ++slot) emit_leaves(slot);
    for (auto& [site, rows] : rows_) emit_site(site, rows);
    for (Loop* loop : analyses_.loops) {
      llvm::formLCSSARecursively(*loop, analyses_.dominators, &analyses_.loops, nullptr);
    }
    for (auto& [site, rows] : rows_) {
      if (sites_[site].loop != nullptr) version(sites_[site].loop, rows);
    }
  }

 private:
  llvm::Function* hook(const char* name) {
    return analyses_.function.getParent()->getFunction(std::string("perdure_ipv.") + name);
  }

  void make_slots() {
    IRBuilder<> builder(&*analyses_.function.getEntryBlock().getFirstInsertionPt());
    for (const Slot& slot : slots_) {
      llvm::Type* type = llvm::ArrayType::get(word_, slot_words);
      stack_.push_back(builder.CreateAlloca(type, nullptr, "ipv.slot"));
      llvm::Type* box = llvm::ArrayType::get(word_, box_bytes / 8);
      boxes_.push_back(slot.box ? builder.CreateAlloca(box, nullptr, "ipv.box") : nullptr);
    }
    for (llvm::AllocaInst* slot : stack_) {
      slot->setAlignment(llvm::Align(slot_align));
      builder.CreateMemSet(slot, builder.getInt8(0), 8 * slot_words, llvm::Align(slot_align));
    }
  }

  static Instruction* in_front_of(const Slot& slot) {
    return slot.nest->getLoopPreheader()->getTerminator();
  }

  void expand_box_of(size_t slot) {
    const Slot& of = slots_[slot];
    box_values_.emplace_back();
    if (of.box) box_values_.back() = expand_box(expander_, *of.box, in_front_of(of));
  }

  // Announces all rows of the nest, if nothing else is going to touch their object.
  void emit_box(size_t slot) {
    const Slot& of = slots_[slot];
    if (!of.box) return;
    const BoxValues& values = box_values_[slot];
    describe_box(in_front_of(of), values, boxes_[slot]);
    HookBuilder builder(in_front_of(of));
    Value* extent = builder.CreateCall(hook("find_box"), {boxes_[slot], values.wanted});
    Value* low = builder.CreateExtractValue(extent, 0);
    Value* high = builder.CreateExtractValue(extent, 1);
    Value* touched = builder.getFalse();
    for (const BoxValues::Ends& other : values.others) {
      Value* both = builder.CreateAnd(builder.CreateICmpULT(other.low, high),
                                      builder.CreateICmpUGT(other.high, low));
      touched = builder.CreateOr(touched, both);
    }
    for (size_t around = 0; around < slots_.size(); ++around) {
      const Loop* nest = slots_[around].nest;
      if (around == slot || nest == nullptr || nest == of.nest || !nest->contains(of.nest))
        continue;
      Value* open = builder.CreateLoad(word_, stack_[around]);
      touched = builder.CreateOr(touched, builder.CreateICmpEQ(open, low));
    }
    builder.CreateCall(hook("enter_box"), {stack_[slot], boxes_[slot], low, high, touched});
    for (const uint64_t offset : {object_field, load_field, past_cache_field}) {
      answers_[slot].push_back(builder.CreateLoad(word_, box_field(builder, boxes_[slot], offset)));
    }
  }

  // Whether what was assumed of the loop's addresses does not hold; null: nothing was assumed.
  Value* failed(Loop* loop) {
    const auto known = failed_.find(loop);
    if (known != failed_.end()) return known->second;
    const llvm::SCEVPredicate& predicate = finder_.facts(loop).evolution->getPredicate();
    Value* value = nullptr;
    if (!predicate.isAlwaysTrue()) {
      Instruction* where = loop->getLoopPreheader()->getTerminator();
      value = expander_.expandCodeForPredicate(&predicate, where);
      value = IRBuilder<>(where).CreateFreeze(value);
    }
    failed_[loop] = value;
    return value;
  }

  // Whether a range in front of `loop` may be wrong; null: never.
  Value* unsure(Loop* loop, const BoxValues::Ends& range) {
    Value* bad = failed(loop);
    const LoopFacts& facts = finder_.facts(loop);
    if (facts.exiting != nullptr || facts.taken == nullptr) return bad;
    // It ends where a loop that is left early would have ended. That may be so far that it wraps.
    Instruction* where = loop->getLoopPreheader()->getTerminator();
    Value* times = expand(facts.taken, where);
    IRBuilder<> builder(where);
    Value* far = builder.CreateICmpUGT(times, builder.getInt64(left_early_times_max));
    far = builder.CreateFreeze(builder.CreateOr(far, builder.CreateICmpUGT(range.low, range.high)));
    return bad == nullptr ? far : builder.CreateOr(bad, far);
  }

  Value* expand(const llvm::SCEV* expression, Instruction* where) {
    return expander_.expandCodeFor(expression, expression->getType(), where);
  }

  void expand_site(size_t number) {
    const Site& site = sites_[number];
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      for (const Member& member : slots_[slot].members) {
        if (member.site != number) continue;
        RowValues values;
        values.slot = slot;
        values.row = &site.rows[member.row];
        IRBuilder<> builder(site.where());
        if (site.intrinsic != nullptr) {
          values.first = site.intrinsic->getOperand(0);
          values.bytes = builder.CreateZExtOrTrunc(site.intrinsic->getOperand(2), word_);
        } else {
          values.first = expand(values.row->first, site.where());
          values.bytes = expand(values.row->bytes, site.where());
          if (Value* bad = failed(site.loop)) {
            values.first = builder.CreateSelect(
                bad, llvm::Constant::getNullValue(values.first->getType()), values.first);
            values.bytes = builder.CreateSelect(bad, builder.getInt64(0), values.bytes);
          }
        }
        rows_[number].push_back(values);
      }
    }
  }

  void expand_guards(size_t slot) {
    for (const Guard& guard : slots_[slot].guards) {
      BoxValues::Ends values{};
      if (guard.loop == nullptr) {
        IRBuilder<> builder(guard.direct.at);
        values.low = builder.CreatePtrToInt(guard.direct.pointer(), word_);
        Value* bytes = builder.getInt64(guard.direct.constant_bytes());
        if (guard.direct.constant_bytes() == 0) {
          bytes = builder.CreateZExtOrTrunc(guard.direct.at->getOperand(2), word_);
        }
        values.high = builder.CreateAdd(values.low, bytes);
      } else {
        Instruction* where = guard.loop->getLoopPreheader()->getTerminator();
        Value* low = expand(guard.range.low, where);
        Value* high = expand(guard.range.high, where);
        IRBuilder<> builder(where);
        values.low = builder.CreatePtrToInt(low, word_);
        values.high = builder.CreatePtrToInt(high, word_);
        if (Value* bad = unsure(guard.loop, values)) {
          values.low = builder.CreateSelect(bad, builder.getInt64(0), values.low);
          values.high = builder.CreateSelect(bad, builder.getInt64(-1), values.high);
        }
      }
      ranges_[&guard] = values;
    }
  }

  // Closes the slot in front of `where` if one of the accesses touches its object.
  void close(size_t slot, const std::vector<const Guard*>& guards, Instruction* where) {
    if (guards.empty()) return;
    HookBuilder builder(where);
    Value* low = builder.CreateLoad(word_, stack_[slot]);
    Value* high =
        builder.CreateLoad(word_, builder.CreateConstGEP1_64(builder.getInt8Ty(), stack_[slot], 8));
    Value* touched = builder.getFalse();
    for (const Guard* guard : guards) {
      const BoxValues::Ends& range = ranges_[guard];
      Value* both = builder.CreateAnd(builder.CreateICmpULT(range.low, high),
                                      builder.CreateICmpUGT(range.high, low));
      touched = builder.CreateOr(touched, both);
    }
    builder.CreateCall(hook("close"), {stack_[slot], builder.CreateFreeze(touched)});
  }

  void emit_guards(size_t slot) {
    std::vector<std::pair<Instruction*, std::vector<const Guard*>>> places;
    for (const Guard& guard : slots_[slot].guards) {
      if (guard.site >= 0) continue;
      Instruction* where =
          guard.loop != nullptr ? guard.loop->getLoopPreheader()->getTerminator() : guard.direct.at;
      if (places.empty() || places.back().first != where) places.push_back({where, {}});
      places.back().second.push_back(&guard);
    }
    for (const auto& [where, guards] : places) close(slot, guards, where);
  }

  void emit_leaves(size_t slot) {
    const Slot& of = slots_[slot];
    if (of.nest == nullptr) {
      for (const Member& member : of.members) {
        Instruction* site = sites_[member.site].intrinsic;
        HookBuilder builder(site->getNextNode());
        builder.SetCurrentDebugLocation(site->getStableDebugLoc());
        builder.CreateCall(hook("leave"), {stack_[slot]});
      }
      return;
    }
    llvm::SmallVector<llvm::BasicBlock*, 8> exits;
    of.nest->getUniqueExitBlocks(exits);
    for (llvm::BasicBlock* exit : exits) {
      HookBuilder builder(&*exit->getFirstInsertionPt());
      if (of.box) {
        builder.CreateCall(hook("leave_box"), {stack_[slot], boxes_[slot]});
      } else {
        builder.CreateCall(hook("leave"), {stack_[slot]});
      }
    }
  }

  void emit_site(size_t number, std::vector<RowValues>& rows) {
    const Site& site = sites_[number];
    Instruction* where = site.where();
    for (const RowValues& row : rows) {
      HookBuilder builder(where);
      builder.CreateCall(hook("enter"), {stack_[row.slot], row.first, row.bytes,
                                         builder.getInt1(slots_[row.slot].alone)});
    }
    for (const RowValues& row : rows) {
      std::vector<const Guard*> guards;
      for (const Guard& guard : slots_[row.slot].guards) {
        if (guard.site == static_cast<int>(number)) guards.push_back(&guard);
      }
      close(row.slot, guards, where);
    }
    Instruction* behind = site.loop != nullptr ? &*site.loop->getExitBlock()->getFirstInsertionPt()
                                               : site.intrinsic->getNextNode();
    for (RowValues& row : rows) {
      HookBuilder builder(where);
      const bool boxed = slots_[row.slot].box.has_value();
      std::vector<Value*> to_begin{stack_[row.slot], row.first, row.bytes};
      std::vector<Value*> to_end{stack_[row.slot], row.first, row.bytes, builder.getFalse()};
      if (boxed) {
        to_begin.insert(to_begin.end(), answers_[row.slot].begin(), answers_[row.slot].end());
        to_end.push_back(boxes_[row.slot]);
      }
      Value* answer = builder.CreateCall(hook(boxed ? "begin_in_box" : "begin"), to_begin);
      row.load_difference = builder.CreateExtractValue(answer, 0);
      row.past_cache = builder.CreateExtractValue(answer, 1);
      if (!row.row->copied.empty()) row.announced = is_announced(builder, row);
      row.end_hook = HookBuilder(behind).CreateCall(hook(boxed ? "end_in_box" : "end"), to_end);
    }
  }

  // Where `begin` calls the runtime.
  Value* is_announced(HookBuilder& builder, const RowValues& row) {
    Value* high = builder.CreateLoad(
        word_, builder.CreateConstGEP1_64(builder.getInt8Ty(), stack_[row.slot], 8));
    return builder.CreateAnd(builder.CreateIsNotNull(high),
                             builder.CreateIsNotNull(builder.CreateFreeze(row.bytes)));
  }

  void version(Loop* loop, const std::vector<RowValues>& rows) {
    std::vector<VersionedRow> versioned;
    for (const RowValues& row : rows) {
      versioned.push_back(
          {row.row, row.first, row.load_difference, row.past_cache, row.bytes, row.announced});
    }
    const std::vector<Value*> past_cache = version_loop(analyses_, loop, versioned);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (past_cache[i] != nullptr) rows[i].end_hook->setArgOperand(3, past_cache[i]);
    }
  }

  Analyses& analyses_;
  Finder& finder_;
  const std::vector<Site>& sites_;
  const std::vector<Slot>& slots_;
  llvm::Type* word_;
  llvm::SCEVExpander expander_;
  std::vector<llvm::AllocaInst*> stack_;           // by slot
  std::vector<llvm::AllocaInst*> boxes_;           // by slot; null: it has none
  std::vector<BoxValues> box_values_;              // by slot
  std::map<size_t, std::vector<Value*>> answers_;  // of boxes, by slot: object, load, past_cache
  std::map<size_t, std::vector<RowValues>> rows_;  // by site
  std::map<const Guard*, BoxValues::Ends> ranges_;
  std::map<Loop*, Value*> failed_;
};

}  // namespace

void emit_hooks(Analyses& analyses, Finder& finder, const std::vector<Site>& sites,
                const std::vector<Slot>& slots) {
  Emitter(analyses, finder, sites, slots).run();
}

}  // namespace perdure::ipv
