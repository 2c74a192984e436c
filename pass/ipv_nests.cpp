// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_nests.hpp"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>

namespace perdure::ipv {

using llvm::Loop;
using llvm::Value;

namespace {

// Nobody but this code knows its address, so that no object can hold it. Two variables that others
// know, or two results of an allocator, may well lie in one object: a section, an arena.
bool is_hidden(const Value* object) {
  if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
    return global->isConstant() ||
           (global->hasLocalLinkage() && !llvm::PointerMayBeCaptured(global, true, true));
  }
  return (llvm::isa<llvm::AllocaInst>(object) || llvm::isNoAliasCall(object)) &&
         !llvm::PointerMayBeCaptured(object, true, true);
}

bool is_private(const Value* pointer) {
  llvm::SmallVector<const Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);  // however deep
  return llvm::all_of(objects, is_hidden);
}

// Of several arrays, as a block of COMMON is.
bool is_compound(const Value* base) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(base);
  if (global == nullptr) return false;
  llvm::Type* type = global->getValueType();
  return type->isStructTy() || (type->isArrayTy() && type->getArrayElementType()->isIntegerTy(8));
}

// Then it would be found in the object whenever the row is.
bool is_same_array(llvm::ScalarEvolution& evolution, const Value* base, const Access& access) {
  const auto* under = llvm::dyn_cast<llvm::SCEVUnknown>(
      evolution.getPointerBase(evolution.getSCEV(access.pointer())));
  return under != nullptr && under->getValue() == base && !is_compound(base);
}

}  // namespace

std::optional<Refusal> NestChooser::prove_access(Box& box, const Access& access) {
  if (box.row->owns(access) || is_private(access.pointer())) return std::nullopt;
  if (is_same_array(analyses_.evolution, box.row->base, access)) {
    return Refusal{"S2", access.at,
                   access.writes ? "stores to the same array, in another row or in none"
                                 : "reads another element of the array"};
  }
  if (shaper_.take(box, access)) return std::nullopt;
  return Refusal{"B2", access.at, "its addresses are not known in front of the nest"};
}

std::optional<Refusal> NestChooser::prove(Box& box) {
  std::vector<Access> own;
  if (box.nest == nullptr) {
    if (auto refusal = finder_.effects(*box.site->intrinsic, own)) return refusal;
  } else if (const auto& opaque = finder_.facts(box.nest).opaque) {
    return *opaque;
  }
  if (auto refusal = shaper_.shape(box)) return refusal;
  for (const Access& access : box.nest == nullptr ? own : finder_.facts(box.nest).accesses) {
    if (auto refusal = prove_access(box, access)) return refusal;
  }
  return std::nullopt;
}

bool NestChooser::try_nest(const Site& site, const Row& row, Loop* nest) {
  Box box;
  box.site = &site;
  box.row = &row;
  box.nest = nest;
  auto refusal = prove(box);
  if (!refusal) {
    boxes.push_back(std::move(box));
    return true;
  }
  refused.push_back({&row, nest, std::move(*refusal)});
  return false;
}

void NestChooser::choose(const Site& site, const Row& row) {
  llvm::SmallVector<Loop*, 4> around;
  for (Loop* loop = analyses_.loops.getLoopFor(site.where()->getParent()); loop != nullptr;
       loop = loop->getParentLoop()) {
    around.push_back(loop);
  }
  for (Loop* nest : llvm::reverse(around)) {
    if (try_nest(site, row, nest)) return;
  }
  (void)try_nest(site, row, site.loop);
}

void NestChooser::run() {
  for (const Site& site : sites_) {
    for (const Row& row : site.rows) {
      if (!is_private(row.base) && !llvm::isa<llvm::AllocaInst>(row.base)) choose(site, row);
    }
  }
}

}  // namespace perdure::ipv
