// State directory: where what must outlive a process is kept, for all processes of the node that
// may set frequencies, and the lock that lets one of them in at a time.
//
//   $PERDURE_ENERGY_STATE, or ROOT/run/perdure-energy where this user may write to it, or
//   ROOT/dev/shm/perdure-energy-UID. All are empty after a reboot, as are the settings.
//
// Threads: any. Failure: a lock that is held for longer than the caller has patience is
// Code::busy; the lock goes with the process that held it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace perdure::energy {

std::string state_directory();

class StateLock {
 public:
  // Makes the directory (mode 0700) if it is missing.
  static Result<StateLock> take(const std::string& directory, std::uint32_t wait_ms);
  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&&) = delete;
  StateLock(const StateLock&) = delete;
  ~StateLock();  // and the directory goes with it if nothing but the lock is in it

 private:
  StateLock(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}
  std::string directory_;
  int fd_;
};

// The file at once and whole, or as it was: a new file, synced, renamed.
Status replace_file(const std::string& path, const std::string& text);
// "" if there is none.
Result<std::string> read_file(const std::string& path);

}  // namespace perdure::energy
