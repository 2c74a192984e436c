// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of a node share about one emulated memory: who is attached, and until when it is
// taken. A POSIX shared memory object, locked (flock) only while somebody attaches or detaches.
//
// Robust against killed ranks: an entry carries the process id and its start time, so that a dead
// process, a zombie, or another process with a recycled id is recognised; every attach and detach
// drops such entries. The object is unlinked by the last one that leaves; whoever opened it just
// before finds it retired and makes a new one. All ranks must see one /proc (one pid namespace).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"

namespace perdure {

class DelayBucket {
 public:
  // `name` as for shm_open: "/perdure-…"; empty for a bucket of this process alone.
  static Result<std::unique_ptr<DelayBucket>> attach(const std::string& name);
  ~DelayBucket();  // detaches
  DelayBucket(const DelayBucket&) = delete;
  DelayBucket& operator=(const DelayBucket&) = delete;

  // Processes attached as of the last attach or detach; at least 1.
  std::uint32_t sharers() const;

  // Takes the memory for `busy_ns` from `from_ns` (monotonic) on, or from when it is free; returns
  // when that ends. Lock-free: a rank killed here leaves nothing but its share of time.
  std::uint64_t draw(std::uint64_t from_ns, std::uint64_t busy_ns);

 private:
  struct Shared;
  DelayBucket(std::string name, Shared* shared, FileHandle object) noexcept;

  std::string name_;
  Shared* shared_;
  FileHandle object_;  // none when not shared
  int owner_pid_;      // a forked child that inherited this object must not detach its parent
};

}  // namespace perdure
