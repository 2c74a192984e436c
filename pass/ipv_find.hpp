// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what may become a row of perdure_ipv_abi.h: what each instruction of a function does to
// memory, and which innermost loops store to all bytes of a range (obligations S1 and S2 of
// docs/ipv_compiler.md).
//
// Everything that is not understood is `opaque`: nothing is transformed around it. Nothing here
// changes the function.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace perdure::ipv {

// One operand of one instruction, through which `bytes` bytes are read or written; or what a call
// does with memory to which `through` leads.
struct Access {
  llvm::Instruction* at = nullptr;
  unsigned operand = 0;
  const llvm::SCEV* bytes = nullptr;  // 64 bits; null: of a call, and not known
  bool writes = false;
  llvm::Value* through = nullptr;  // of a call
  llvm::Value* pointer() const { return through != nullptr ? through : at->getOperand(operand); }
  // 0: not constant.
  uint64_t constant_bytes() const;
  bool operator==(const Access& other) const {
    return at == other.at && operand == other.operand && through == other.through;
  }
};

// Why something is not transformed: the obligation, and the instruction that stands against it.
struct Refusal {
  std::string obligation;
  const llvm::Instruction* at = nullptr;
  std::string why;
};

// [low, high), pointers.
struct Range {
  const llvm::SCEV* low = nullptr;
  const llvm::SCEV* high = nullptr;
};

// Stores that together write [first, first + bytes), each byte in one iteration; and loads of the
// same bytes in the same iteration. What of an iteration's bytes no store overwrites for certain,
// other members of a struct or what is stored to on a condition, is copied from the old copy when
// the iteration begins: after that it can be read in the new one.
struct Row {
  llvm::Value* base = nullptr;
  const llvm::SCEV* first = nullptr;
  const llvm::SCEV* bytes = nullptr;  // 64 bits
  int64_t step = 0;                   // bytes to the next iteration's; 0: an intrinsic's
  std::vector<Access> stores, loads_before, loads_behind;
  // An iteration's bytes are `hull`, then come others up to the step: all iterations' but that at
  // the end of the row. The lowest store is `lead` bytes from the first.
  int64_t hull = 0;
  int64_t lead = 0;
  struct Part {
    int64_t begin;  // from the iteration's first byte; below the step
    int64_t end;
  };
  std::vector<Part> copied;
  bool is_wrapped(const Part& part) const { return part.begin >= hull; }
  bool owns(const Access& access) const;
};

// Where rows are announced: around an innermost loop, or around one memset, memcpy or memmove.
struct Site {
  llvm::Loop* loop = nullptr;
  llvm::Instruction* intrinsic = nullptr;
  std::vector<Row> rows;
  // The last instruction before the loop, or the intrinsic.
  llvm::Instruction* where() const;
  llvm::Loop* surrounding(const llvm::LoopInfo& loops) const;
};

// An innermost loop.
struct LoopFacts {
  std::unique_ptr<llvm::PredicatedScalarEvolution> evolution;
  llvm::BasicBlock* exiting = nullptr;  // the only one, or none
  const llvm::SCEV* taken = nullptr;    // 64 bits: times back to the header; at most, if there
                                        // are several exits; null: not known
  std::vector<Access> accesses;
  std::optional<Refusal> opaque;
  // Steps that are only known when the program runs, as those of Fortran's descriptors, and what
  // `evolution` assumes of them: that what an iteration stores to is contiguous.
  llvm::DenseMap<const llvm::SCEV*, int64_t> assumed_steps;
};

// What a call of a function touches that is not its own.
struct CallSummary {
  struct Touched {
    llvm::Value* what;  // a global variable, or an argument of the function
    bool writes;
  };
  std::vector<Touched> touched;
  std::string against;  // why it may be anything; empty: it is what is listed
};

struct Analyses {
  llvm::Function& function;
  llvm::LoopInfo& loops;
  llvm::ScalarEvolution& evolution;
  llvm::DominatorTree& dominators;
  const llvm::TargetLibraryInfo& functions;
};

class Finder {
 public:
  // `takes_calls`: of functions that access nothing but what is named, else only mathematics.
  explicit Finder(Analyses& analyses, bool takes_calls = true)
      : analyses_(analyses), takes_calls_(takes_calls) {}

  // The accesses of an instruction; why it is opaque, if it is.
  std::optional<Refusal> effects(llvm::Instruction& instruction, std::vector<Access>& accesses);
  LoopFacts& facts(llvm::Loop* innermost);
  // What the accesses of all iterations touch, as seen in front of the loop.
  std::optional<Range> range(const Access& access, llvm::Loop* innermost);
  // All sites of the function; loops that store, but in no row, go to refused().
  std::vector<Site> sites();
  std::vector<std::pair<llvm::Loop*, Refusal>>& refused() { return refused_; }

 private:
  std::optional<Refusal> check_shape(llvm::Loop* loop, LoopFacts& facts);
  std::vector<Row> rows(llvm::Loop* loop);
  void assume_steps(llvm::Loop* loop, LoopFacts& facts);
  const llvm::SCEV* executions(const Access& access, const LoopFacts& facts);
  // Of ipv_rows.cpp.
  struct Tiles;
  std::optional<Row> tile(llvm::Loop* loop, LoopFacts& facts, std::vector<Access> group);
  Tiles sort_tiles(llvm::Loop* loop, LoopFacts& facts, const std::vector<Access>& group);
  std::optional<Refusal> lay_out(llvm::Loop* loop, LoopFacts& facts, const Tiles& tiles, Row& row);
  void widen_for_loads(llvm::Loop* loop, LoopFacts& facts, const Tiles& tiles, Row& row);
  std::optional<Refusal> place_loads(llvm::Loop* loop, LoopFacts& facts, Row& row);
  std::optional<Refusal> place_load(llvm::Loop* loop, LoopFacts& facts, Row& row,
                                    const Access& load);
  bool is_in_each(const llvm::Loop* loop, const llvm::Instruction* at) const;
  std::optional<Site> intrinsic_site(llvm::Instruction& instruction);
  // Of ipv_effects.cpp and ipv_calls.cpp.
  std::optional<Refusal> call_effects(llvm::CallBase& call, std::vector<Access>& accesses);
  void touch(llvm::CallBase& call, llvm::Value* pointer, bool writes,
             std::vector<Access>& accesses);
  const llvm::SCEV* word(uint64_t value);
  bool is_safe(const llvm::SCEV* expression, const llvm::Instruction* at);

  Analyses& analyses_;
  bool takes_calls_;
  llvm::DenseMap<const llvm::Function*, CallSummary> summaries_;
  llvm::DenseMap<llvm::Loop*, std::unique_ptr<LoopFacts>> facts_;
  std::vector<std::pair<llvm::Loop*, Refusal>> refused_;
};

// The bytes between two pointers, if that is a constant.
std::optional<int64_t> distance(llvm::ScalarEvolution& evolution, const llvm::SCEV* from,
                                const llvm::SCEV* to);

// The access's address from iteration to iteration, if it is a constant step away; else null.
const llvm::SCEVAddRecExpr* recurrence(LoopFacts& facts, llvm::Loop* loop, const Access& access);
std::optional<int64_t> constant_step(const llvm::SCEVAddRecExpr* of, const LoopFacts& facts,
                                     llvm::ScalarEvolution& evolution);
// Does `first` come first, in any iteration in which both are reached, if `first` or `second` is
// reached in all?
bool precedes(const llvm::DominatorTree& dominators, const llvm::Instruction* first,
              const llvm::Instruction* second);

// Functions of the C library that touch no memory but errno, and return.
bool is_mathematics(const llvm::CallBase& call, const llvm::TargetLibraryInfo& library);
std::string name_of(const llvm::CallBase& call);

constexpr uint64_t rows_bytes_min = 256;  // a call costs more than to copy them
constexpr int64_t element_bytes_max = 512;

}  // namespace perdure::ipv
