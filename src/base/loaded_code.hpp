// SPDX-License-Identifier: BSD-3-Clause
//
// Loaded code: the executable and the libraries of the process.
//
// lead_calls() makes calls of a function of another library lead elsewhere: it changes the words of
// the linkage tables (ELF's global offset tables) that lead to the function now, or will when they
// are first used. So a process pays nothing before that, and nothing after it has been undone. Left
// alone are the library that the new function is in, what is loaded later, calls within the library
// that defines the function, code that is linked statically, and whoever was bound to a function of
// the same name elsewhere.
//
// Threads: any, one call at a time; others may call the function meanwhile. Failure: what the
// kernel does not let be changed stays as it is.
#pragma once

#include <cstdint>

namespace perdure {

// Whether the address is in code or data of the executable or of a library.
bool is_in_loaded_code(std::uintptr_t address);

// How many the loader has loaded so far.
std::uint64_t libraries_loaded();

// What calls of `name` by the process lead to by default; null: there is no such function.
void* function_named(const char* name);

// Calls of `name` that lead to `from` lead to `to`. How many words of linkage tables that changed.
unsigned lead_calls(const char* name, void* from, void* to);

}  // namespace perdure
