// SPDX-License-Identifier: BSD-3-Clause
//
// Media guard: finds out whether mapped bytes can be read at all. A poisoned line of persistent
// memory, a block that a disk can't read, and a file that was cut while mapped raise SIGBUS; here
// they become an answer.
//
// The handler of SIGBUS is installed at the first call; a fault that is not ours goes to the one
// before. Threads: any; each has its own guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace perdure {

// Reads one byte of each line of [begin, begin + count). Nothing if all could be read, otherwise
// the offset from `begin` of the first line that could not.
std::optional<std::uint64_t> first_unreadable(const std::byte* begin, std::uint64_t count);

// Copies them; false if they could not all be read, and then what is at `to` means nothing.
bool copy_readable(std::byte* to, const std::byte* from, std::uint64_t count);

}  // namespace perdure
