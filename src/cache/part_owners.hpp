// SPDX-License-Identifier: BSD-3-Clause
//
// Part owners: which processes use a part, and which of them have died.
//
// Each has a number, and as long as it uses the part the kernel holds a lock for it on the byte of
// that number of the part's file (an open file description's lock). Process ids would not do: they
// are used again, and threads of a process that is killed may store for a while after it has become
// a zombie. The kernel gives the lock up when the last thread has closed its files, and so has run
// its last instruction.
//
// Invariants
//   cache.O1  A process has its number's lock from before its first store to the part until after
//       its last one.
//   cache.O2  An entry of the table that is not 0 while nobody has its lock was left by a dead
//       process. It is 0 again only when what that process left has been cleaned up
//       (part_peers.hpp, cache.P10), by a process that holds the lock meanwhile.
//
// Threads: any. Failure: join() when all numbers are in use.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "parts/part_format.hpp"

namespace perdure {

// What is known of the processes that use a part, seen from outside.
enum class OwnersLife : std::uint8_t {
  none,   // nobody has a number
  dying,  // all that have one are being killed
  alive,
};

class PartOwners {
 public:
  // `file` is an open file description that no other PartOwners has, `table` the part's owners.
  PartOwners(FileHandle file, OwnerFormat* table);
  ~PartOwners();
  PartOwners(const PartOwners&) = delete;
  PartOwners& operator=(const PartOwners&) = delete;

  // Takes a number of which nothing is left behind.
  Status join();
  // Gives it back; nothing may be marked with it.
  void leave();
  std::uint32_t number() const { return number_; }  // from 1 on

  // The lock of a number whose process has died and left something undone; false: it lives, or has
  // left nothing. To be given back by the same thread, with what became of the entry.
  bool take_over(std::uint32_t number);
  void give_back(std::uint32_t number, bool clean);
  // Whether anybody has died and left something.
  bool any_left_behind();

  // Of a part that this process has not joined.
  static OwnersLife life_of(const FileHandle& file, const OwnerFormat* table);

 private:
  FileHandle file_;
  OwnerFormat* table_;
  std::uint32_t number_ = 0;
  // The kernel tells processes apart, not the threads of one. Settling one may lead to another.
  std::recursive_mutex mutex_;
};

}  // namespace perdure
