// SPDX-License-Identifier: BSD-3-Clause
//
// What the name of a call says of its access: MPI_File_iwrite_at_all writes at a given offset, is
// collective, and may return before it is done. Pure.
#pragma once

#include <cstdint>

namespace perdure {

enum class Direction : std::uint8_t { read, write };

// Which of a file's pointers an access uses.
enum class Pointer : std::uint8_t { given, individual, shared, ordered };

struct Access {
  Direction direction;
  Pointer pointer;
  bool collective;
  bool nonblocking;
};

constexpr bool has(const char* name, const char* word) {
  for (; *name != '\0'; ++name) {
    const char* a = name;
    const char* b = word;
    while (*b != '\0' && *a == *b) {
      ++a;
      ++b;
    }
    if (*b == '\0') return true;
  }
  return false;
}

constexpr Access access_of(const char* name) {
  Access access{has(name, "write") ? Direction::write : Direction::read, Pointer::individual,
                has(name, "_all") || has(name, "_ordered"), name[0] == 'i'};
  if (has(name, "_at")) access.pointer = Pointer::given;
  if (has(name, "_shared")) access.pointer = Pointer::shared;
  if (has(name, "_ordered")) access.pointer = Pointer::ordered;
  return access;
}

}  // namespace perdure
