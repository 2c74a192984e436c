// SPDX-License-Identifier: BSD-3-Clause
//
// Emits the calls of perdure_ipv_abi.h, the tests that ipv_prove.hpp left, and for each row loop a
// second version of it whose accesses to the rows have the differences added.
//
// Each slot is two words of the stack, low and high: the range of the object that the nest has open
// in it, or 0. What happens with them are the functions of ipv_hook_functions.cpp, most of which
// are inlined.
#pragma once

#include "ipv_prove.hpp"

namespace perdure::ipv {

// Transforms the function. `sites` and `slots` are of ipv_prove.hpp; analyses are stale after it.
void emit_hooks(Analyses& analyses, Finder& finder, const std::vector<Site>& sites,
                const std::vector<Slot>& slots);

// LLVM's text of the functions that the hooks call, to be linked into a module: once.
void link_hook_functions(llvm::Module& module);
// After emit_hooks(): replaces the calls of them by their bodies, and removes them.
void inline_hook_functions(llvm::Module& module);
// One that stays. What it promises of its arguments is true of its text.
bool is_out_of_line(const llvm::Function& function);

}  // namespace perdure::ipv
