// SPDX-License-Identifier: BSD-3-Clause
//
// Environment: the one place where Perdure reads variables, and the list of those that it knows.
//
// A program that has more rights than its caller (setuid, file capabilities) reads none: they are
// the caller's, who could make it write to files that only the program may write.
//
// Threads: as getenv(). No failure: what is not set is "".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace perdure {

// What the variable says; "" if there is none.
std::string environment(const char* name);

// Names of all variables of docs/environment.md, sorted: those of the library, of the commands, and
// of the tests.
std::span<const std::string_view> known_variables();

// Whether it is one of them, or begins as those that end with any word, as PERDURE_TEST_MPICC_NAME.
bool is_known_variable(std::string_view name);

// The known name that is the most like `name`; "" if none is within some slips of the keys.
std::string_view variable_like(std::string_view name);

// Names each PERDURE_ variable of this process that nobody knows on stderr, where it would be
// passed over in silence: once in a process, and only on rank 0 as the launcher numbers them.
void say_unknown_variables();

}  // namespace perdure
