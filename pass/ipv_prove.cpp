// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_prove.hpp"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>

#include <algorithm>

namespace perdure::ipv {

using llvm::Loop;
using llvm::Value;

namespace {

constexpr size_t guards_max = 32;     // of a slot at one loop
constexpr int64_t merged_gap = 1024;  // ranges that are nearer are tested as one

// An allocation of its own, whatever else the program does. An argument is not one: `restrict`
// speaks of what is stored to in a function, an object is larger than that.
bool is_allocation(const Value* object) {
  return llvm::isa<llvm::GlobalVariable, llvm::AllocaInst>(object) || llvm::isNoAliasCall(object);
}

bool is_hidden(const Value* object) {
  if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
    return global->hasLocalLinkage() && !llvm::PointerMayBeCaptured(global, true, true);
  }
  return (llvm::isa<llvm::AllocaInst>(object) || llvm::isNoAliasCall(object)) &&
         !llvm::PointerMayBeCaptured(object, true, true);
}

llvm::SmallVector<const Value*, 4> objects_under(const Value* pointer) {
  llvm::SmallVector<const Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);  // however deep
  return objects;
}

// Of several arrays, as a block of COMMON is: rows of one and reads of another can be distinguished
// when the program runs.
bool is_compound(const Value* base) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(base);
  if (global == nullptr) return false;
  llvm::Type* type = global->getValueType();
  if (type->isStructTy()) return true;
  return type->isArrayTy() && type->getArrayElementType()->isIntegerTy(8);
}

}  // namespace

bool is_constant(const Value* object) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
  return global != nullptr && global->isConstant();
}

bool is_private(const Value* base) {
  const auto objects = objects_under(base);
  return std::all_of(objects.begin(), objects.end(), [](const Value* object) {
    return llvm::isa<llvm::AllocaInst>(object) || is_hidden(object);
  });
}

bool is_disjoint(const Value* base, const Value* pointer) {
  const auto of_base = objects_under(base);
  const bool known = std::all_of(of_base.begin(), of_base.end(), is_allocation);
  for (const Value* object : objects_under(pointer)) {
    if (is_constant(object)) continue;
    const bool among = std::find(of_base.begin(), of_base.end(), object) != of_base.end();
    if (among || !is_allocation(object) || (!known && !is_hidden(object))) return false;
  }
  return true;
}

bool is_same_array(llvm::ScalarEvolution& evolution, const Value* base, const Access& access) {
  const auto* under = llvm::dyn_cast<llvm::SCEVUnknown>(
      evolution.getPointerBase(evolution.getSCEV(access.pointer())));
  return under != nullptr && under->getValue() == base && !is_compound(base);
}

std::optional<Refusal> Prover::guard_loop(Slot& slot, const Access& access, Loop* loop) {
  const auto range = finder_.range(access, loop);
  if (!range) return Refusal{"S4", access.at, "its addresses are not known before the loop"};
  Guard guard;
  guard.loop = loop;
  guard.range = *range;
  for (const Member& member : slot.members) {
    if (sites_[member.site].loop == loop) guard.site = static_cast<int>(member.site);
  }
  size_t at_loop = 0;
  for (Guard& other : slot.guards) {
    if (other.loop != loop) continue;
    ++at_loop;
    const auto low = distance(analyses_.evolution, other.range.low, range->low);
    const auto high = distance(analyses_.evolution, other.range.high, range->high);
    if (!low || !high || std::abs(*low) > merged_gap || std::abs(*high) > merged_gap) continue;
    if (*low < 0) other.range.low = range->low;
    if (*high > 0) other.range.high = range->high;
    return std::nullopt;
  }
  if (at_loop >= guards_max) return Refusal{"S4", access.at, "too many other arrays in the loop"};
  slot.guards.push_back(guard);
  return std::nullopt;
}

std::optional<Refusal> Prover::prove_access(Slot& slot, const Access& access) {
  for (const Member& member : slot.members) {
    if (row_of(member).owns(access)) return std::nullopt;
  }
  if (is_disjoint(slot.base, access.pointer())) return std::nullopt;
  if (access.bytes == nullptr) {
    return Refusal{"S4", access.at,
                   "calls " + name_of(*llvm::cast<llvm::CallBase>(access.at)) +
                       " with a pointer that may lead to it"};
  }
  Loop* loop = analyses_.loops.getLoopFor(access.at->getParent());
  Guard guard;
  guard.direct = access;
  bool direct = loop == nullptr || !loop->isInnermost();
  bool is_row_loop = false;
  for (const Member& member : slot.members) {
    const Site& site = sites_[member.site];
    if (site.intrinsic != nullptr && site.surrounding(analyses_.loops) == loop) direct = true;
    if (site.intrinsic == access.at) guard.site = static_cast<int>(member.site);
    is_row_loop |= site.loop == loop;
  }
  if (is_same_array(analyses_.evolution, slot.base, access)) {
    return Refusal{is_row_loop && !access.writes ? "S2" : "S4", access.at,
                   access.writes ? "stores to the same array, in no row"
                                 : "reads another element of the array"};
  }
  if (!direct) return guard_loop(slot, access, loop);
  slot.guards.push_back(guard);
  return std::nullopt;
}

std::optional<Refusal> Prover::prove(Slot& slot) {
  std::vector<Access> accesses;
  if (slot.nest == nullptr) {
    for (const Member& member : slot.members) {
      finder_.effects(*sites_[member.site].intrinsic, accesses);
    }
  } else {
    if (!slot.nest->isLoopSimplifyForm()) {
      return Refusal{"S4", slot.nest->getHeader()->getTerminator(), "the shape of the loop"};
    }
    for (llvm::BasicBlock* block : slot.nest->blocks()) {
      for (llvm::Instruction& instruction : *block) {
        if (auto refusal = finder_.effects(instruction, accesses)) return refusal;
      }
    }
  }
  for (size_t i = 1; i < slot.members.size(); ++i) {
    if (slot.members[i].site == slot.members[i - 1].site) {
      return Refusal{"S1", row_of(slot.members[i]).stores.front().at,
                     "stores to another row of the array in the same loop"};
    }
  }
  for (const Access& access : accesses) {
    if (auto refusal = prove_access(slot, access)) return refusal;
  }
  return std::nullopt;
}

// Takes in what an access touches in all of the nest.
bool Prover::take_into_box(Box& box, const Access& access, const Loop* nest) {
  const llvm::SCEV* pointer = analyses_.evolution.getSCEV(access.pointer());
  Range range{pointer, analyses_.evolution.getAddExpr(pointer, access.bytes)};
  const llvm::BasicBlock* inside = access.at->getParent();
  return shaper_.widen(box, range, analyses_.loops.getLoopFor(inside), inside, nest) &&
         shaper_.take(box.others, range);
}

// B1 and B3 of ipv_box.hpp.
std::optional<Refusal> Prover::prove_box(const Slot& slot, Box& box) {
  box.member = slot.members.front();
  const Row& row = row_of(box.member);
  if (slot.members.size() != 1) {
    return Refusal{"B1", row.stores.front().at, "is one of several rows of the array in the nest"};
  }
  shaper_.announce_before(slot.nest->getLoopPreheader()->getTerminator());
  if (auto refusal = shaper_.shape(box, slot.nest)) return refusal;
  llvm::SmallPtrSet<const Loop*, 8> seen;
  for (const Guard& guard : slot.guards) {
    std::vector<Access> accesses{guard.direct};
    if (guard.loop != nullptr) {
      if (!seen.insert(guard.loop).second) continue;
      accesses = finder_.facts(guard.loop).accesses;
      llvm::erase_if(accesses, [&](const Access& access) {
        return row.owns(access) || is_disjoint(slot.base, access.pointer());
      });
    }
    for (const Access& access : accesses) {
      if (take_into_box(box, access, slot.nest)) continue;
      return Refusal{"B3", access.at, "its addresses are not known in front of the nest"};
    }
  }
  return std::nullopt;
}

void Prover::place(Value* base, const std::vector<Member>& members, Loop* nest) {
  Slot slot;
  slot.base = base;
  slot.nest = nest;
  slot.members = members;
  slot.alone = nest == nullptr || sites_[members.front().site].loop == nest;
  auto refusal = prove(slot);
  if (!refusal) {
    if (!slot.alone) {
      Box box;
      slot.no_box = prove_box(slot, box);
      if (!slot.no_box) slot.box = std::move(box);
    }
    slots.push_back(std::move(slot));
    return;
  }
  refused.push_back({base, nest, *refusal, row_of(members.front()).stores.front().at});
  if (nest != nullptr) place_parts(base, members, nest);
}

// In the loops of `nest`, or of the function; memory intrinsics outside of them each by itself.
void Prover::place_parts(Value* base, const std::vector<Member>& members, Loop* nest) {
  std::vector<std::pair<Loop*, std::vector<Member>>> parts;
  for (const Member& member : members) {
    const Site& site = sites_[member.site];
    Loop* part = site.surrounding(analyses_.loops);
    if (part == nest && site.loop != nullptr) continue;  // there is nothing smaller
    while (part != nest && part->getParentLoop() != nest) part = part->getParentLoop();
    if (part == nest) part = nullptr;
    const auto known = std::find_if(parts.begin(), parts.end(), [part](const auto& entry) {
      return part != nullptr && entry.first == part;
    });
    if (known == parts.end()) {
      parts.push_back({part, {member}});
    } else {
      known->second.push_back(member);
    }
  }
  for (const auto& [part, of_part] : parts) place(base, of_part, part);
}

void Prover::run() {
  std::vector<std::pair<Value*, std::vector<Member>>> by_base;
  for (size_t site = 0; site < sites_.size(); ++site) {
    for (size_t row = 0; row < sites_[site].rows.size(); ++row) {
      Value* base = sites_[site].rows[row].base;
      if (is_private(base) || is_constant(base)) continue;
      const auto known = std::find_if(by_base.begin(), by_base.end(),
                                      [base](const auto& entry) { return entry.first == base; });
      if (known == by_base.end()) {
        by_base.push_back({base, {{site, row}}});
      } else {
        known->second.push_back({site, row});
      }
    }
  }
  for (const auto& [base, members] : by_base) place_parts(base, members, nullptr);
}

}  // namespace perdure::ipv
