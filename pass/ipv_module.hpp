// SPDX-License-Identifier: BSD-3-Clause
//
// What the pass `ipv` asks of, and does to, a module as a whole.
#pragma once

#include <llvm/IR/Module.h>

namespace perdure::ipv {

// It refers to a function perdure_ipv_…, or has something annotated with "perdure_ipv".
bool is_marked(const llvm::Module& module);

// The compiler made it from a parallel region of OpenMP.
bool is_parallel_body(const llvm::Function& function);

// Gives pages of their own to the static arrays that are annotated or passed to
// perdure_ipv_object() in this module; with `all`, to each that is large. True if there are any.
bool place_arrays(llvm::Module& module, bool all);

// perdure_ipv_plain() in front of calls by which the kernel or a network stores to memory: read(),
// the receives of MPI and the like. True if there are any.
bool announce_kernel_writers(llvm::Module& module);

}  // namespace perdure::ipv
