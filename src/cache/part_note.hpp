// SPDX-License-Identifier: BSD-3-Clause
//
// Part note: a file beside a pool that says of a file committed with it that its part is elsewhere.
//
// A pool may outlive such a part: the pool is in persistent memory and the part in /dev/shm when
// the node is started again, or both nodes see the pool and one has the part. What the file itself
// holds then is older than the pool's version.
//
// Invariants
//   cache.N1  The note is durable before anything of the file is committed with the pool, and there
//       as long as the part is. Whoever removes the part removes the note first.
//   cache.N2  So a note without a part is of a part that was lost.
//
// Threads: any. Failure: a Status that names the file.
#pragma once

#include <string>

#include "base/status.hpp"
#include "cache/cache_part.hpp"

namespace perdure {

constexpr const char* part_note_ending = ".part-note";
// Of the part of that cached file.
std::string part_note_path(const std::string& pool, const std::string& path);

// Of a part that is beside its pool, or in none, there is no note.
Status write_part_note(const std::string& part_file, const PartIdentity& identity);
// Of the part in that file. Best effort: where the pool is gone there is nothing to remove, and
// where it can't be written a later opening asks.
void remove_part_note(const std::string& part_file);
void remove_part_note_of(const std::string& pool, const std::string& path);

bool has_part_note(const std::string& pool, const std::string& path);
// Code::not_found, with what was lost and what can be done.
Status part_was_lost(const std::string& pool, const std::string& path);

}  // namespace perdure
