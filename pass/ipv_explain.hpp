// SPDX-License-Identifier: BSD-3-Clause
//
// What the pass `ipv` did and why not more, as JSON lines: what `perdure ipv explain` reads.
//
//   {"kind": "nest", …}     a nest that is announced as a box, and the place of its row
//   {"kind": "refused", …}  a nest of a row that would have been larger, and what stopped it
//   {"kind": "loop", …}     an innermost loop whose stores are no row, and why
//   {"kind": "function", …} left alone as a whole
//   {"kind": "module", …}   the same of a file; its "function" is ""
// Places are {"file", "line"}, where the module has debug information (-g1 does).
#pragma once

#include <llvm/Support/JSON.h>

#include "ipv_nests.hpp"

namespace perdure::ipv {

class Explanation {
 public:
  explicit Explanation(const llvm::Module& module) : module_(module) {}
  void left_alone(const llvm::Function& function, llvm::StringRef why);
  void left_alone(llvm::StringRef why);  // the module
  void function(const llvm::Function& function, const Finder& finder, const NestChooser& chooser);
  // Adds the lines to the file, in one piece: compilers that run side by side share it. Says on
  // stderr if it can't.
  void write(const std::string& file) const;

 private:
  llvm::json::Object entry(const char* kind, const llvm::Function& function) const;
  void refused(const llvm::Function& function, const NestRefusal& refusal);

  const llvm::Module& module_;
  std::vector<llvm::json::Value> entries_;
};

}  // namespace perdure::ipv
