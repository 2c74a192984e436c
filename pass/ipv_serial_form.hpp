// SPDX-License-Identifier: BSD-3-Clause
//
// The body of a parallel region of OpenMP as one thread would run it that has all iterations of the
// loop that is shared out. A team as a whole touches the same memory, as each iteration is run
// once, by one of its threads, and what is beside the loop touches the same for each of them. So
// what is proven of the serial form, without regard to the order of iterations, holds for the team.
//
// There is one if the body calls nothing of OpenMP's library but what shares out one loop, waits or
// reduces, and if nothing in it depends on which thread runs it.
#pragma once

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <string>
#include <vector>

namespace perdure::ipv {

// `body` with one more parameter, a pointer, after the others. `map` leads from old to new.
llvm::Function* copy_with_team(llvm::Function& body, llvm::StringRef suffix,
                               llvm::ValueToValueMapTy& map);

// A variable of the program that the body has by reference.
struct Captured {
  llvm::Value* pointer = nullptr;
  uint64_t bytes = 0;
};

struct SerialForm {
  llvm::Function* function = nullptr;  // parameters as copy_with_team(); null: there is none
  llvm::ValueToValueMapTy map;         // what became of the body's values
  std::string why;                     // there is none
  // Of the body: the calls that share out its loop, and end it.
  llvm::CallInst* share = nullptr;
  std::vector<llvm::CallInst*> ends;
  // Of the body: what depends on which iterations a thread has, but only on that.
  llvm::DenseSet<const llvm::Value*> of_share;
  // Of `function`: what it loads in front of all instead of where the body does. That is the same
  // only if nothing in the region stores there.
  std::vector<Captured> captured;
};

void make_serial_form(llvm::Function& body, SerialForm& form);

}  // namespace perdure::ipv
