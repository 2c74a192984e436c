// SPDX-License-Identifier: BSD-3-Clause
//
// Part journal: the small writes that a node's processes have under way in a part.
//
//   cache.J1  A small write is first intended: its bytes, then its length, go to an entry that
//       nobody else uses meanwhile; once the write is done (cache.P2, cache_part.hpp) the length is
//       set to 0. Recovery does intended writes again, whole. So a small write is whole or absent.
//   cache.J2  A durable one flushes (1) its intention, with a checksum, fence, before the bytes are
//       stored, and (4) that nothing is intended any more, fence, before it is acknowledged: an
//       intention that outlived its write would undo the writes after it. The checksum goes with
//       the length: a later write that is not durable may leave its own length in the entry, and
//       the rest of an intention as it was.
//
// A process that joins takes an entry for all of its threads, which take turns. A thread has one of
// its own after a few small writes, or from its first large one on, until it ends or gives it back,
// if the device has room. An entry that is taken is marked with its process's number (cache.P10).
// It gets its space before: those after the ones that were ever used are holes, and nobody looks at
// them.
//
// Threads: any number; an entry is used by one at a time. Failure: a process could take no entry
// when it joined, and can't now: too many have, or there is no space for one; the caller says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

class PartJournal {
 public:
  // On a part's device; both outlive the journal.
  PartJournal(Device& device, std::span<JournalFormat> entries);
  ~PartJournal();
  PartJournal(const PartJournal&) = delete;
  PartJournal& operator=(const PartJournal&) = delete;

  // This process's number in the part, before the first write.
  void join(std::uint32_t number);
  // All entries of this process are free from now on; after its last write.
  void leave();

  // The calling thread's own entry; null if it can have none. It asks at its `first` call, and at
  // twice as many each time.
  JournalFormat* entry_of_thread(std::uint32_t first = 1);
  // The same for small writes, of which most files have few.
  JournalFormat* entry_for_small() { return entry_of_thread(4); }
  // For a thread that may not write again for long, and of which there are many.
  void give_entry_of_thread();

  // Space for processes that join later: before blocks take what is left of the device (cache.P16).
  Status take_spare_room();
  // Those that were ever used.
  std::vector<JournalFormat*> entries() const;
  // Whether recovery does the entry's write again. `same_boot`: what was stored is not lost.
  static bool is_intended(const JournalFormat& entry, bool same_boot);
  std::vector<JournalFormat*> intended(bool same_boot) const;
  // cache.P6 (4).
  Status forget_durably(JournalFormat& entry);
  // Flushed, without a fence.
  void forget_all();

  // cache.P15: whether a write of the range was under way, and may have changed some of it.
  bool may_be_writing(std::uint64_t offset, std::uint64_t bytes) const;

  class Turn;
  class Intention;
  class Announcement;

 private:
  Status claim_entry(JournalFormat*& to);
  JournalFormat* common_entry();
  void forget(JournalFormat& entry);
  static void give_entry(std::uint64_t journal, JournalFormat* entry);
  static void watch_thread();
  std::uint64_t offset_of(const void* place) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - device_.base());
  }

  Device& device_;
  std::span<JournalFormat> entries_;
  std::uint32_t owner_ = owner_unknown;
  std::uint64_t number_;  // no other journal of this process has or had it
  std::mutex mutex_;
  std::size_t ready_ = 1;  // entries that have their space, as far as is known here
  bool has_spare_room_ = false;
  std::vector<JournalFormat*> taken_;  // by this process
  std::mutex turns_;
  JournalFormat* common_ = nullptr;  // of all its threads, used by whoever holds turns_
};

// The entry of a small write, for as long as it takes: the thread's own, or that of the process.
class PartJournal::Turn {
 public:
  explicit Turn(PartJournal& journal);
  // Null: there is none, nor could one be had within a second.
  JournalFormat* entry() const { return entry_; }

 private:
  std::unique_lock<std::mutex> turn_;
  JournalFormat* entry_;
};

// cache.P3. Holds the bytes of a small write; forgotten at its end.
class PartJournal::Intention {
 public:
  Intention(PartJournal& journal, JournalFormat& entry, std::uint64_t offset, const void* from,
            std::uint64_t bytes)
      : journal_(journal), entry_(entry), bytes_(bytes) {
    // A process dies between two stores of its program; the compiler keeps them in order here.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    entry_.offset = offset;
    entry_.checksum = 0;
    std::memcpy(entry_.bytes, from, bytes);
  }
  ~Intention() { word(entry_.length).store(0, std::memory_order_release); }
  Intention(const Intention&) = delete;
  Intention& operator=(const Intention&) = delete;

  // To be written from here: another thread may change where they came from meanwhile, and what is
  // done again must be the same.
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(entry_.bytes); }
  void declare() {
    word(entry_.length).store(bytes_, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  Status declare_durably();
  Status retract_durably() { return journal_.forget_durably(entry_); }

 private:
  PartJournal& journal_;
  JournalFormat& entry_;
  std::uint64_t bytes_;
};

// cache.P15. A large write, from before its first byte is stored until its grains are dirty. Where
// no entry is free it goes unannounced.
class PartJournal::Announcement {
 public:
  Announcement(JournalFormat* entry, std::uint64_t offset, std::uint64_t bytes) : entry_(entry) {
    if (entry_ == nullptr) return;
    word(entry_->writing_offset).store(offset, std::memory_order_relaxed);
    word(entry_->writing_bytes).store(bytes, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Announcement() {
    if (entry_ != nullptr) word(entry_->writing_bytes).store(0, std::memory_order_release);
  }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

 private:
  JournalFormat* entry_;
};

}  // namespace perdure
