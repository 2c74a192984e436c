// SPDX-License-Identifier: BSD-3-Clause
//
// File note: how long a file of the program's own was at a version, and what it ended with. Pure.
//
// What is parsed comes from a medium and is not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

struct FileNote {
  std::string path;   // as the program named it, which is what it is known by
  std::string place;  // the directory that it was in
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // of the last of them

  std::string full_path() const;
};

// Of the scalar that has the note of a path, which ends with the digits of its CRC-64; and whether
// a scalar may be one.
std::string file_note_digits(const std::string& path);
std::string file_note_name(const std::string& path);
bool is_file_note_name(const std::string& name);

std::vector<std::byte> file_note_bytes(const FileNote& note);
// Empty: these are none.
std::optional<FileNote> file_note_of(std::span<const std::byte> bytes);

// The files that a version notes, in the order of their scalars.
std::vector<FileNote> file_notes_of(const Catalogue& catalogue);
// What it notes of this path. Code::damaged if the scalar of that name is no note of it.
Result<std::optional<FileNote>> find_file_note(const Catalogue& catalogue, const std::string& path);

}  // namespace perdure
