// SPDX-License-Identifier: BSD-3-Clause
//
// Fetching ahead: what a row loop that stores past the cache will load soon is asked for before.
//
// A processor foresees loads within a page, as a rule, and begins anew in the next one; and while
// stores past the cache wait for memory, loads have to wait, too. So each load of such a loop that
// moves by a constant step asks for what lies so many bytes further on: as many as the runtime says
// (perdure_ipv_fetch_ahead) where the next row begins where this one ends; else a sixteenth of the
// row, as what lies beyond its end is fetched in vain. The address of a prefetch may be any: none
// faults.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

namespace perdure {

// `loop` is innermost, and stores past the cache.
void fetch_ahead(llvm::Loop& loop, llvm::ScalarEvolution& evolution);

}  // namespace perdure
