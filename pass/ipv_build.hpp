// SPDX-License-Identifier: BSD-3-Clause
//
// What a module was transformed from, noted in the module (perdure_ipv_build of
// perdure_ipv_abi.h), so that a build can be recorded as checked.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace perdure::ipv {

// In front of the transformation: of all that it can see, without debug information, so that a
// build with --ipv-check, which adds that, has the same one. 32 hexadecimal digits.
std::string hash_of(const llvm::Module& module);

// Notes it, and gives the note to the runtime before main().
void note_build(llvm::Module& module, const std::string& hash);

}  // namespace perdure::ipv
