// SPDX-License-Identifier: BSD-3-Clause
//
// Part files: the files of a part directory, opened, locked and removed, for part_directory.cpp and
// part_recovery.cpp. The invariants are those of part_directory.hpp.
//
// Threads: any. Failure: a Status that names the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "base/status.hpp"
#include "cache/cache_part.hpp"

namespace perdure {

constexpr const char* part_suffix = ".part";

struct BootId {
  std::uint64_t words[2] = {0, 0};
};
BootId boot_id();
bool is_same_boot(const PartHeaderFormat& header);
// Since 1970, when this machine was booted, to a second.
std::uint64_t boot_time_ns();

// Parts are read as truth, and written back to the user's files.
Trust part_trust();

// C3. A directory that was removed while its lock was waited for is made anew.
Result<Directory> lock_part_directory(const std::string& directory, bool make);

enum class PartLock : std::uint8_t { shared, alone };
Result<FileHandle> open_part_lock(const std::string& path);
// Whether the lock was granted; it is not waited for.
Result<bool> try_lock_part(const FileHandle& handle, PartLock lock, const std::string& path);
Status unlock_part(const FileHandle& handle, const std::string& path);
// C4. Whether nobody uses the part any more; it is locked for this process alone then.
Result<bool> lock_part_alone(const FileHandle& handle, const std::string& path);
// Whether all who use a part, whose file is locked by somebody, are being killed.
bool all_are_dying(const FileHandle& handle, const std::string& path);

std::string undo_file_path(const std::string& path);
// The part, with its undo log if it has one.
Result<std::unique_ptr<CachePart>> attach_part_file(const std::string& path);
// A part whose making was cut short has no header yet, and no byte of anybody.
bool is_unborn(const std::string& path);
// The part first: an undo log without a part is nobody's.
Status remove_part_files(const std::string& path);
// The default directory goes when it is empty; a user's own stays.
void tidy_part_directory(const std::string& directory);

}  // namespace perdure
