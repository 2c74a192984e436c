// SPDX-License-Identifier: BSD-3-Clause
//
// The rows of a nest of loops as a box of perdure_ipv_abi.h, and what else the nest touches as
// ranges: both known in front of it.
//
// Proven, or else there is no box
//   pass.B1  All executions of the row together store to each byte of the box once, and all of
//       them are run: the row's first byte moves by a constant distance in each of the loops
//       around, its length does not change, and it is run once in each iteration of them.
//       Conditions around it are tested in front, where they do not depend on the iteration.
//   pass.B2  What else the nest may touch lies, over all iterations, in ranges that are known in
//       front.
// That rows do not overlap, and ranges lie outside of the object, is for the runtime to find out.
//
// A range does not wrap: its addresses are accessed, as all iterations are run. Where they may not
// be, a condition keeps what it is computed of small.
#pragma once

#include <llvm/Analysis/PostDominators.h>

#include "ipv_find.hpp"

namespace perdure::ipv {

// [low, high), pointers.
struct Range {
  const llvm::SCEV* low = nullptr;
  const llvm::SCEV* high = nullptr;
};

// Holds in front of the nest, or there is no box.
struct Condition {
  llvm::Value* value = nullptr;  // it holds there; or, null,
  llvm::CmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  const llvm::SCEV* left = nullptr;
  const llvm::SCEV* right = nullptr;
  bool wanted = true;
  bool operator==(const Condition& other) const {
    return value == other.value && predicate == other.predicate && left == other.left &&
           right == other.right && wanted == other.wanted;
  }
};

struct Box {
  static constexpr size_t dimensions_max = 4;

  const Site* site = nullptr;
  const Row* row = nullptr;
  llvm::Loop* nest = nullptr;         // null: one memory intrinsic
  const llvm::SCEV* first = nullptr;  // pointer
  struct Dimension {
    const llvm::SCEV* count;   // 64 bits
    const llvm::SCEV* stride;  // 64 bits
  };
  std::vector<Dimension> dimensions;  // of bytes, and of each loop around the row; innermost first
  std::vector<Condition> conditions;
  std::vector<Range> others;

  // In front of this instruction all is known.
  llvm::Instruction* place() const {
    return nest == nullptr ? site->intrinsic : nest->getLoopPreheader()->getTerminator();
  }
  // Unless it is there already.
  void demand(const Condition& condition) {
    if (!llvm::is_contained(conditions, condition)) conditions.push_back(condition);
  }
};

class BoxShaper {
 public:
  explicit BoxShaper(Analyses& analyses) : analyses_(analyses) {}
  // pass.B1: fills in where the box begins, and its dimensions.
  std::optional<Refusal> shape(Box& box);
  // pass.B2: takes in what an access touches in all of the nest. False: that is not known in front.
  bool take(Box& box, const Access& access);

 private:
  bool is_known(const Box& box, const llvm::SCEV* expression) const {
    return ipv::is_known(analyses_, expression, box.place());
  }
  std::optional<Refusal> around(Box& box, llvm::Loop* loop, const llvm::BasicBlock* inside);
  std::optional<Refusal> conditions(Box& box, const llvm::BasicBlock* block,
                                    const llvm::Loop* loop);
  std::optional<Condition> condition(const Box& box, const llvm::BranchInst& branch, bool wanted);
  const llvm::SCEV* end_of(Box& box, const llvm::SCEV* pointer, bool upper, const llvm::Loop* loop,
                           bool each_time);
  bool is_in_each(const Box& box, const llvm::Loop* loop, const llvm::BasicBlock* inside) const;
  bool keep_small(Box& box, const llvm::SCEV* times, const llvm::SCEV* step);

  Analyses& analyses_;
  std::unique_ptr<llvm::PostDominatorTree> after_;
};

}  // namespace perdure::ipv
