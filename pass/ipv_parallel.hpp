// SPDX-License-Identifier: BSD-3-Clause
//
// Parallel loops of OpenMP. Clang puts the body of a parallel region into a function, and calls the
// library with it, which has each thread of the team run it, with a part of the iterations. Rows
// of such a loop are announced together, as a box, before the team is called: nobody else does
// anything then, so the rules of perdure_ipv_abi.h hold as for one thread.
//
// Proven (in the serial form, ipv_serial_form.hpp), for each row loop of the body
//   B1  All its executions together store to each byte of a box once (ipv_box.hpp).
//   B2  Loads of a row are of the element that the same iteration stores to (S2).
//   B3  Nothing else in the region touches the object (S4): other arrays are different ones, or
//       lie, over all iterations, in ranges that are compared with the object before the team is
//       called. No calls but mathematics, no atomics. Variables that the body has by reference, of
//       which the serial form computes, are not stored to in the region, by the same comparisons.
//   B4  The body has no effect before its loop, except on its own stack, so that this part of it
//       may be run once more, by the thread that calls the team.
//
// What is emitted (ipv_parallel_emit.cpp)
//   - the probe: the body up to its loop, which then computes and announces the boxes, and returns;
//   - the team's body, which has one parameter more: where the boxes' answers are. Its row loops
//     have further versions (ipv_version.hpp). Nothing in it calls the runtime, except where a
//     thread stored past the cache;
//   - the probe before the call of the library, and after it the end of the boxes.
// A body that is called in another way, as where a region is serialised, is called as it was.
#pragma once

#include "ipv_box.hpp"
#include "ipv_prove.hpp"
#include "ipv_serial_form.hpp"

namespace perdure::ipv {

// A region's body, and the calls by which the library runs it.
struct ParallelBody {
  llvm::Function* body = nullptr;
  std::vector<llvm::CallInst*> forks;
};

std::vector<ParallelBody> parallel_bodies(llvm::Module& module);

class BoxProver {
 public:
  static constexpr size_t boxes_max = 16;

  BoxProver(Analyses& analyses, Finder& finder, std::vector<Site>& sites, SerialForm& form);
  void run();
  // In front of which the boxes are announced.
  llvm::Instruction* place() const { return shaper_.place(); }
  std::vector<Range> captured() const;
  // What became this instruction of the serial form; null: not known.
  const llvm::Instruction* origin(const llvm::Value* now) const;
  const std::vector<Box>& boxes() const { return boxes_; }
  const std::vector<NestRefusal>& refused() const { return refused_; }

 private:
  std::vector<Member> candidates();
  bool is_in_shared_loop(const llvm::Instruction* at) const;
  std::optional<Refusal> choose_place(const std::vector<Member>& members);
  std::optional<Refusal> check_prefix();
  std::optional<Refusal> collect_accesses();
  std::optional<Refusal> prove(Box& box);
  std::optional<Refusal> prove_access(Box& box, const Access& access);
  std::optional<Refusal> prove_write(Box& box, const Access& access);
  bool is_beside(const Row& row, const Access& access);
  std::optional<Range> range(Box& box, const Access& access);
  const llvm::Instruction* store_of(const Member& member) const;
  void refuse(const Member& member, Refusal refusal);

  Analyses& analyses_;
  Finder& finder_;
  std::vector<Site>& sites_;
  SerialForm& form_;
  BoxShaper shaper_;
  llvm::DominatorTree of_body_;
  llvm::DenseMap<const llvm::Value*, const llvm::Value*> origin_;  // in the body
  std::vector<Access> accesses_;
  std::vector<Box> boxes_;
  std::vector<NestRefusal> refused_;
};

// Transforms the calls of the body; the serial form becomes the probe. `team`: what
// copy_with_team() made of the body, by `to_team`; `of_team` is of it. Analyses are stale then.
void emit_boxes(const ParallelBody& body, Analyses& of_form, const std::vector<Site>& sites,
                const BoxProver& prover, Analyses& of_team, llvm::ValueToValueMapTy& to_team);

}  // namespace perdure::ipv
