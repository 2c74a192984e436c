// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses the nests: for rows with the same base, the largest loop in which nothing else can touch
// their object from the first row to its end (obligation S4), or what is left to test for that when
// the program runs. ipv_hook.hpp emits the tests.
#pragma once

#include "ipv_box.hpp"

namespace perdure::ipv {

// An access that may touch the object: whether it does is tested in front of it. One of the two:
struct Guard {
  Access direct;               // this access, each time
  llvm::Loop* loop = nullptr;  // or all of an innermost loop, in front of it,
  Range range;                 // which touch no more than this
  int site = -1;               // after the `enter` of this site of the slot, whose place it is
};

// Rows with one base in one nest. When the program runs, at most one object is open in a slot.
struct Slot {
  llvm::Value* base = nullptr;
  llvm::Loop* nest = nullptr;  // null: a memory intrinsic that stands alone
  bool alone = false;          // the row is the nest
  std::vector<Member> members;
  std::vector<Guard> guards;
  // All rows may be announced at once, in front of the nest; or why not, if it has several rows.
  std::optional<Box> box;
  std::optional<Refusal> no_box;
};

// Why rows of `base` have no nest as large as `nest`.
struct NestRefusal {
  llvm::Value* base = nullptr;
  llvm::Loop* nest = nullptr;
  Refusal refusal;
  const llvm::Instruction* row = nullptr;  // a store
};

class Prover {
 public:
  Prover(Analyses& analyses, Finder& finder, std::vector<Site>& sites)
      : analyses_(analyses), finder_(finder), sites_(sites), shaper_(analyses, finder, sites) {}
  void run();
  std::vector<Slot> slots;
  std::vector<NestRefusal> refused;

 private:
  void place(llvm::Value* base, const std::vector<Member>& members, llvm::Loop* nest);
  void place_parts(llvm::Value* base, const std::vector<Member>& members, llvm::Loop* nest);
  std::optional<Refusal> prove(Slot& slot);
  std::optional<Refusal> prove_access(Slot& slot, const Access& access);
  std::optional<Refusal> guard_loop(Slot& slot, const Access& access, llvm::Loop* loop);
  std::optional<Refusal> prove_box(const Slot& slot, Box& box);
  bool take_into_box(Box& box, const Access& access, const llvm::Loop* nest);
  const Row& row_of(const Member& member) const { return sites_[member.site].rows[member.row]; }

  Analyses& analyses_;
  Finder& finder_;
  std::vector<Site>& sites_;
  BoxShaper shaper_;
};

// Whatever the program does, no object holds `base` and a byte that `pointer` leads to.
bool is_disjoint(const llvm::Value* base, const llvm::Value* pointer);
// The access goes by `base`, which is one array.
bool is_same_array(llvm::ScalarEvolution& evolution, const llvm::Value* base, const Access& access);
// Nobody stores to it.
bool is_constant(const llvm::Value* base);

// Can be no object of the program: nobody else knows its address, or it is on the stack.
bool is_private(const llvm::Value* base);

}  // namespace perdure::ipv
