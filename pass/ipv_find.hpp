// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what may become the rows of a box of perdure_ipv_abi.h: what each instruction of a function
// does to memory, and which innermost loops store to all bytes of a range (obligations S1 and S2 of
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

// One operand of one instruction, through which `bytes` bytes are read or written.
struct Access {
  llvm::Instruction* at = nullptr;
  unsigned operand = 0;
  const llvm::SCEV* bytes = nullptr;  // 64 bits
  bool writes = false;
  llvm::Value* pointer() const { return at->getOperand(operand); }
  // 0: not constant.
  uint64_t constant_bytes() const;
  bool operator==(const Access& other) const { return at == other.at && operand == other.operand; }
};

// Why something is not transformed: the obligation, and the instruction that stands against it.
struct Refusal {
  std::string obligation;
  const llvm::Instruction* at = nullptr;
  std::string why;
};

// Stores that together write [first, first + bytes), each byte in one iteration; and loads of the
// same bytes in the same iteration.
struct Row {
  llvm::Value* base = nullptr;
  const llvm::SCEV* first = nullptr;
  const llvm::SCEV* bytes = nullptr;  // 64 bits
  int64_t step = 0;                   // bytes to the next iteration's; 0: an intrinsic's
  std::vector<Access> stores, loads_before, loads_behind;
  bool owns(const Access& access) const;
};

// An innermost loop, or one memset, memcpy or memmove.
struct Site {
  llvm::Loop* loop = nullptr;
  llvm::Instruction* intrinsic = nullptr;
  std::vector<Row> rows;
  // The last instruction before the loop, or the intrinsic.
  llvm::Instruction* where() const;
};

struct LoopFacts {
  std::vector<Access> accesses;
  std::optional<Refusal> opaque;
  // Of an innermost loop.
  llvm::BasicBlock* exiting = nullptr;  // the only one, or none
  const llvm::SCEV* taken = nullptr;    // 64 bits: times back to the header; null: not known
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
  explicit Finder(Analyses& analyses) : analyses_(analyses) {}

  // The accesses of an instruction; why it is opaque, if it is.
  std::optional<Refusal> effects(llvm::Instruction& instruction, std::vector<Access>& accesses);
  const LoopFacts& facts(llvm::Loop* loop);
  // All sites of the function; loops that store, but in no row, go to refused().
  std::vector<Site> sites();
  const std::vector<std::pair<llvm::Loop*, Refusal>>& refused() const { return refused_; }

 private:
  std::optional<Refusal> check_shape(llvm::Loop* loop, LoopFacts& facts);
  std::vector<Row> rows(llvm::Loop* loop);
  const llvm::SCEV* executions(const Access& access, const LoopFacts& facts);
  const llvm::SCEVAddRecExpr* recurrence(llvm::Loop* loop, const Access& access);
  std::optional<int64_t> constant_step(const llvm::SCEVAddRecExpr* of);
  bool is_in_each(const llvm::Loop* loop, const llvm::Instruction* at) const;
  std::optional<Site> intrinsic_site(llvm::Instruction& instruction);
  // Of ipv_rows.cpp.
  std::optional<Row> tile(llvm::Loop* loop, std::vector<Access> group);
  std::optional<Refusal> place_load(llvm::Loop* loop, Row& row, const Access& load);
  const llvm::SCEV* word(uint64_t value);

  Analyses& analyses_;
  llvm::DenseMap<llvm::Loop*, std::unique_ptr<LoopFacts>> facts_;
  std::vector<std::pair<llvm::Loop*, Refusal>> refused_;
};

// Its value can be computed in front of `at`.
bool is_known(const Analyses& analyses, const llvm::SCEV* expression, const llvm::Instruction* at);

// The bytes between two pointers, if that is a constant.
std::optional<int64_t> distance(llvm::ScalarEvolution& evolution, const llvm::SCEV* from,
                                const llvm::SCEV* to);

constexpr uint64_t rows_bytes_min = 256;  // no box has so short ones

}  // namespace perdure::ipv
