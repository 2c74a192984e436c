// SPDX-License-Identifier: BSD-3-Clause
//
// A row loop within others, all of whose rows are announced together: as a box of
// perdure_ipv_abi.h, in front of all of them. Of a parallel loop (ipv_parallel.hpp) that is the
// only way; of a nest that one thread runs (ipv_prove.hpp) it spares two calls of the runtime for
// each row.
//
// Proven, or else there is no box
//   B1  All executions of the row together store to each byte of the box once, and all of them are
//       run: the row's first byte moves by a constant distance in each of the loops around, its
//       length does not change, and it is run once in each iteration of them. Conditions around it
//       are tested in front, where they do not depend on the iteration.
//   B3  What else may touch the object lies, over all iterations, in ranges that are compared with
//       it in front.
// That rows do not overlap is for whoever announces the box to find out: counts and strides tell.
//
// A range does not wrap: its addresses are accessed, as all iterations are run. Where they may not
// be, a condition keeps what it is computed of small.
#pragma once

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/IRBuilder.h>

#include "ipv_find.hpp"

namespace llvm {
class SCEVExpander;
}

namespace perdure::ipv {

// A row of a site.
struct Member {
  size_t site;
  size_t row;
};

// Holds in front of the loops, or there is no box.
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
  Member member;
  const llvm::SCEV* first = nullptr;  // pointer
  struct Dimension {
    const llvm::SCEV* count;   // 64 bits
    const llvm::SCEV* stride;  // 64 bits
  };
  std::vector<Dimension> dimensions;  // of bytes, and of each loop around the row; innermost first
  std::vector<Condition> conditions;
  std::vector<Range> others;  // touch no byte of the object, or there is no box
  std::vector<Range> writes;  // nor, these, of what is captured by a parallel region
  // Unless it is there already.
  void demand(const Condition& condition);
};

class BoxShaper {
 public:
  static constexpr size_t dimensions_max = 4;

  BoxShaper(Analyses& analyses, Finder& finder, const std::vector<Site>& sites)
      : analyses_(analyses), finder_(finder), sites_(sites) {}
  // In front of this instruction all is to be known.
  void announce_before(llvm::Instruction* place);
  llvm::Instruction* place() const { return place_; }
  // B1, of all loops around the row up to `outermost`; null: of all there are.
  std::optional<Refusal> shape(Box& box, const llvm::Loop* outermost = nullptr);
  bool is_known(const llvm::SCEV* expression);
  // Over all iterations of `loop` and those around it up to `outermost`, of what `inside`, a block
  // of it, accesses. False: that is not known.
  bool widen(Box& box, Range& range, const llvm::Loop* loop, const llvm::BasicBlock* inside,
             const llvm::Loop* outermost = nullptr);
  // Takes the range in, perhaps as one with another that is near. False: there are too many.
  bool take(std::vector<Range>& ranges, const Range& range);

 private:
  std::optional<Refusal> around(Box& box, llvm::Loop* loop, const llvm::BasicBlock* inside,
                                const llvm::SCEV*& first);
  std::optional<Refusal> conditions(Box& box, const llvm::BasicBlock* block,
                                    const llvm::BasicBlock* from, const llvm::Loop* loop);
  std::optional<Condition> condition(const llvm::BranchInst& branch, bool wanted);
  const llvm::SCEV* length(Box& box, const Row& row, llvm::Loop* loop);
  const llvm::SCEV* times_of(const llvm::Loop* loop);
  const llvm::SCEV* end_of(Box& box, const llvm::SCEV* pointer, bool upper, const llvm::Loop* loop,
                           bool each_time);
  bool is_in_each(const Box& box, const llvm::Loop* loop, const llvm::BasicBlock* inside) const;
  bool keep_small(Box& box, const llvm::SCEV* times, const llvm::SCEV* step);
  const Row& row_of(const Box& box) const { return sites_[box.member.site].rows[box.member.row]; }
  const llvm::Instruction* store_of(const Box& box) const { return row_of(box).stores.front().at; }

  Analyses& analyses_;
  Finder& finder_;
  const std::vector<Site>& sites_;
  std::unique_ptr<llvm::PostDominatorTree> after_;
  llvm::DenseMap<const llvm::Loop*, const llvm::SCEV*> lengths_;  // iterations, found by length()
  llvm::Instruction* place_ = nullptr;
};

// A box in memory, 14 words: as the functions of ipv_hook_functions.cpp have it.
enum BoxField : uint64_t {
  object_field = 0,  // its first byte; 0: the box is not announced
  load_field = 8,    // the runtime's answer
  past_cache_field = 16,
  through_field = 24,  // 1: a thread stored to it through the cache
  first_field = 32,
  dimensions_field = 40,
  counts_field = 48,  // four
  strides_field = 80,
  box_bytes = 112,
};

// A box as values in front of its loops.
struct BoxValues {
  llvm::Value* first = nullptr;  // pointer
  struct Dimension {
    llvm::Value* count;   // 64 bits
    llvm::Value* stride;  // 64 bits
  };
  std::vector<Dimension> dimensions;
  llvm::Value* wanted = nullptr;  // 1 bit: whether the conditions hold
  struct Ends {
    llvm::Value* low;   // 64 bits
    llvm::Value* high;  // 64 bits
  };
  std::vector<Ends> others;
};

std::vector<BoxValues::Ends> expand_ranges(llvm::SCEVExpander& expander,
                                           const std::vector<Range>& ranges,
                                           llvm::Instruction* where);
BoxValues expand_box(llvm::SCEVExpander& expander, const Box& box, llvm::Instruction* where);
// Stores its place, counts and strides to `memory`, a box.
void describe_box(llvm::Instruction* where, const BoxValues& box, llvm::Value* memory);
llvm::Value* box_field(llvm::IRBuilderBase& builder, llvm::Value* box, uint64_t offset);

}  // namespace perdure::ipv
