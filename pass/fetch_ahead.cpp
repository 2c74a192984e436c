// SPDX-License-Identifier: BSD-3-Clause
#include "fetch_ahead.hpp"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <vector>

namespace perdure {

using llvm::IRBuilder;
using llvm::LoadInst;
using llvm::Loop;
using llvm::ScalarEvolution;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;
using llvm::Value;

namespace {

constexpr const char* distance_name = "perdure_ipv_fetch_ahead";  // perdure_ipv_abi.h
constexpr int64_t line_bytes = 64;
// Loads that are further apart are of different lines, and pages, each.
constexpr uint64_t step_bytes_max = 512;
// Of a row, so much may be fetched beyond its end in vain.
constexpr int64_t share_in_vain = 16;
// Between a row's end and the next row: ghost cells, and what the loop leaves to others.
constexpr int64_t gap_bytes_max = 512;
// A loop that reads more at once computes more, and most of it from lines that are in the cache.
constexpr size_t streams_max = 4;

// Loads of a loop that are at most a line apart.
struct Stream {
  LoadInst* load;
  const SCEVAddRecExpr* address;
  int64_t step;
};

class Streams {
 public:
  Streams(Loop& loop, ScalarEvolution& evolution) : loop_(loop), evolution_(evolution) {
    for (llvm::BasicBlock* block : loop.blocks()) {
      for (llvm::Instruction& instruction : *block) {
        if (auto* load = llvm::dyn_cast<LoadInst>(&instruction)) add(*load);
      }
    }
  }
  const std::vector<Stream>& found() const { return found_; }

 private:
  void add(LoadInst& load) {
    const auto* address =
        llvm::dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(load.getPointerOperand()));
    if (address == nullptr || address->getLoop() != &loop_ || !address->isAffine()) return;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(evolution_));
    if (step == nullptr || step->getAPInt().abs().ugt(step_bytes_max)) return;
    for (const Stream& other : found_) {
      const auto* distance =
          llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(address, other.address));
      if (distance != nullptr && distance->getAPInt().abs().ult(line_bytes)) return;
    }
    found_.push_back({&load, address, step->getAPInt().getSExtValue()});
  }

  Loop& loop_;
  ScalarEvolution& evolution_;
  std::vector<Stream> found_;
};

// By how much `start` moves from one iteration of `around` to the next, whatever else it consists
// of; null: that is not known.
const SCEV* pitch_of(const SCEV* start, const Loop* around, ScalarEvolution& evolution) {
  if (around == nullptr) return nullptr;
  if (const auto* moving = llvm::dyn_cast<SCEVAddRecExpr>(start)) {
    return moving->getLoop() == around && moving->isAffine() ? moving->getStepRecurrence(evolution)
                                                             : nullptr;
  }
  if (const auto* product = llvm::dyn_cast<llvm::SCEVMulExpr>(start)) {
    const auto* factor = llvm::dyn_cast<llvm::SCEVConstant>(product->getOperand(0));
    if (factor == nullptr || product->getNumOperands() != 2) return nullptr;
    const SCEV* pitch = pitch_of(product->getOperand(1), around, evolution);
    return pitch == nullptr ? nullptr : evolution.getMulExpr(factor, pitch);
  }
  const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(start);
  if (sum == nullptr) return nullptr;
  for (const SCEV* part : sum->operands()) {
    if (const SCEV* pitch = pitch_of(part, around, evolution)) return pitch;
  }
  return nullptr;
}

class Distance {
 public:
  Distance(Loop& loop, ScalarEvolution& evolution)
      : loop_(loop),
        evolution_(evolution),
        where_(loop.getLoopPredecessor()->getTerminator()),
        expander_(evolution, where_->getDataLayout(), "fetch_ahead"),
        builder_(where_) {
    llvm::Type* word = builder_.getInt64Ty();
    most_ = builder_.CreateLoad(word, where_->getModule()->getOrInsertGlobal(distance_name, word));
  }

  // Null: none is known.
  Value* of(const Stream& stream) {
    const SCEV* count = evolution_.getBackedgeTakenCount(&loop_);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(count)) return nullptr;
    const int64_t up = stream.step < 0 ? -1 : 1;
    llvm::Type* word = builder_.getInt64Ty();
    const SCEV* bytes = evolution_.getMulExpr(evolution_.getTruncateOrZeroExtend(count, word),
                                              constant(up * stream.step));
    if (!expander_.isSafeToExpandAt(bytes, where_)) return nullptr;
    Value* share = builder_.CreateAnd(
        builder_.CreateUDiv(expanded(bytes), builder_.getInt64(share_in_vain)), -line_bytes);
    Value* distance = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, share, most_);
    const SCEV* pitch = pitch_of(stream.address->getStart(), loop_.getParentLoop(), evolution_);
    if (pitch != nullptr) {
      const SCEV* gap = evolution_.getMinusSCEV(
          evolution_.getMulExpr(evolution_.getTruncateOrSignExtend(pitch, word), constant(up)),
          bytes);
      if (!expander_.isSafeToExpandAt(gap, where_)) return distance;
      Value* near = builder_.CreateICmpULE(expanded(gap), builder_.getInt64(gap_bytes_max));
      distance = builder_.CreateSelect(near, most_, distance);
    }
    return up > 0 ? distance : builder_.CreateNeg(distance);
  }

 private:
  const SCEV* constant(int64_t value) {
    return evolution_.getConstant(builder_.getInt64Ty(), static_cast<uint64_t>(value), true);
  }
  Value* expanded(const SCEV* value) {
    return expander_.expandCodeFor(value, builder_.getInt64Ty(), where_);
  }

  Loop& loop_;
  ScalarEvolution& evolution_;
  llvm::Instruction* where_;
  llvm::SCEVExpander expander_;
  IRBuilder<> builder_;
  Value* most_;
};

}  // namespace

void fetch_ahead(Loop& loop, ScalarEvolution& evolution) {
  if (loop.getLoopPredecessor() == nullptr) return;
  const Streams streams(loop, evolution);
  if (streams.found().size() > streams_max) return;
  Distance distance(loop, evolution);
  for (const Stream& stream : streams.found()) {
    Value* further = distance.of(stream);
    if (further == nullptr) return;
    IRBuilder<> builder(stream.load);
    Value* pointer = stream.load->getPointerOperand();
    Value* address = builder.CreateGEP(builder.getInt8Ty(), pointer, further);
    builder.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {pointer->getType()},
        {address, builder.getInt32(0), builder.getInt32(3), builder.getInt32(1)});
  }
}

}  // namespace perdure
