// SPDX-License-Identifier: BSD-3-Clause
//
// State directory: where what must outlive a process is kept, for all processes of the node that
// may set frequencies, and the lock that lets one of them in at a time.
//
//   $PERDURE_ENERGY_STATE, or ROOT/run/perdure-energy where this user may write to it, or
//   ROOT/dev/shm/perdure-energy-UID. All are empty after a reboot, as are the settings.
//
// It belongs to this user or to root. An administrator's may be written by a group (Trust::group in
// base/files.hpp): what its members leave there is not believed (frequency_journal.hpp).
//
// Threads: any. Failure: a lock that is held for longer than the caller waits is
// Code::busy; the lock goes with the process that held it. A directory or a lock that is another's,
// or no such thing at all, is refused at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"

namespace perdure::energy {

std::string state_directory();

class StateLock {
 public:
  // Makes the directory (mode 0700) if it is missing.
  static Result<StateLock> take(const std::string& directory, std::uint32_t wait_ms);
  StateLock(StateLock&&) noexcept = default;
  StateLock& operator=(StateLock&&) = delete;
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  ~StateLock();  // and the directory goes with it if nothing but the lock is in it

  const Directory& directory() const { return directory_; }

 private:
  StateLock(Directory directory, FileHandle file)
      : directory_(std::move(directory)), file_(std::move(file)) {}
  Directory directory_;
  FileHandle file_;
};

}  // namespace perdure::energy
