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

// While one exists, a page of the range that can't be read becomes zeros, for good: for what is
// looked at while another program may cut its file. Whoever has read asks at the end whether there
// were such pages, as what it read then means nothing. The range is mapped read-only.
class GuardedRange {
 public:
  GuardedRange(const std::byte* begin, std::uint64_t count);
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;
  bool has_lost_pages() const;

  struct Entry;  // of the list that the handler of SIGBUS walks

 private:
  Entry* entry_;
};

}  // namespace perdure
