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
#include <utility>

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

// cache.C3. A directory, and the lock of this user's processes in it: a file that nobody else may
// open, which is made to be locked and goes with the lock.
class LockedDirectory : public Directory {
 public:
  LockedDirectory(Directory directory, FileHandle lock)
      : Directory(std::move(directory)), lock_(std::move(lock)) {}
  LockedDirectory(LockedDirectory&&) noexcept = default;
  LockedDirectory& operator=(LockedDirectory&&) noexcept = default;
  ~LockedDirectory() { remove_lock(); }
  // Its name; the lock stays until the end.
  void remove_lock();

 private:
  FileHandle lock_;
};
// A directory that was removed while its lock was waited for is made anew. Code::busy names a
// process that keeps the lock for long: one that is stopped for 10 s, or works for 10 min.
Result<LockedDirectory> lock_part_directory(const std::string& directory, bool make);

Result<FileHandle> open_part_lock(const std::string& path);
// cache.C4. Whether nobody uses the part any more; it is locked for this process alone then.
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
void tidy_part_directory(LockedDirectory& locked);

}  // namespace perdure
