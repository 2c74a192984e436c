// SPDX-License-Identifier: BSD-3-Clause
//
// Aside table: how the processes of a node agree on files that stand aside, whose bytes they read
// and write in the file itself, as without a cache, until one of them makes a part (mpiio's
// file_aside.cpp decides when). One file in each directory of parts, mapped by every process that
// has a file aside there. A file is known by its device and inode.
//
// Invariants
//   cache.A1  While a part of a file exists no access of it aside is under way: the maker of one
//       sets `leave` in every entry of the file and waits until none is busy, then makes it. An
//       access is busy before it looks at `leave`, and `leave` is set before the maker looks at
//       `busy`; all four are sequentially consistent, so that one of the two sees the other.
//   cache.A2  An entry that was made while a part was being made is not overlooked: a maker makes
//       `making` odd before it looks at the entries, and even when the part has its name. A process
//       that makes an entry looks at `making` after that, and, if it was even, whether there is a
//       part after that.
//   cache.A3  Makers hold the lock of the directory (cache.C3 of part_directory.hpp), so there is
//       one at a time, and one that has died is known by it: a process that has the lock and sees
//       `making` odd makes it even.
//   cache.A4  `leave` is taken back by the entry's process, under the lock of the directory, when
//       it sees no part there. What a dead maker set does no more than cost that look.
//   cache.A5  The entries of a process that has died are cleared, by the process that holds its
//       number's lock (part_owners.hpp): it has run its last instruction, and so no access is under
//       way.
//   cache.A6  Every process that uses the table has a shared lock of its file, taken under the lock
//       of the directory. A process that gets it alone, there, makes the whole table anew, whatever
//       it held. So what is believed was made by processes of this user that live.
//
// The wait of a maker has a bound: then it gives up, and the file stays aside.
//
// Threads: any. Failure: a Status that names the file; whoever can't use the table has no file
// aside. An entry that isn't there (all are taken) is no failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "base/status.hpp"
#include "cache/aside_format.hpp"
#include "cache/part_owners.hpp"

namespace perdure {

constexpr const char* aside_name = "aside";

class AsideTable;

// An entry of this process; given back by the destructor.
class AsideEntry {
 public:
  AsideEntry(std::shared_ptr<AsideTable> table, AsideEntryFormat* format, std::uint32_t number)
      : table_(std::move(table)), format_(format), number_(number) {}
  AsideEntry(AsideEntry&& other) noexcept
      : table_(std::move(other.table_)),
        format_(std::exchange(other.format_, nullptr)),
        number_(other.number_) {}
  AsideEntry& operator=(AsideEntry&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(format_, other.format_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~AsideEntry();

  // Begins an access; false: the file has a part, or had, and the access is to go there. An access
  // that was begun is ended.
  bool begin() {
    word(format_->busy).fetch_add(1);
    if (word(format_->leave).load() == 0) return true;
    end();
    return false;
  }
  void end() { word(format_->busy).fetch_sub(1, std::memory_order_release); }
  // cache.A4: under the lock of the directory.
  void stay() { word(format_->leave).store(0); }

  const AsideTable& table() const { return *table_; }
  // In the whole table.
  std::uint32_t number() const { return number_; }

 private:
  std::shared_ptr<AsideTable> table_;
  AsideEntryFormat* format_;
  std::uint32_t number_;
};

class AsideTable : public std::enable_shared_from_this<AsideTable> {
 public:
  // That of a directory, which this process joins when it first asks; both are made if absent.
  static Result<std::shared_ptr<AsideTable>> of(const std::string& directory);
  // The same under the lock of the directory, and null if nobody has a file aside there.
  static Result<std::shared_ptr<AsideTable>> find(const Directory& locked);
  // At the end of the process's use of files; the last process removes the table's file.
  static void leave_all();
  static bool any_joined();
  // Under the lock of the directory. One that processes left which were killed.
  static void remove_unused(const Directory& locked);
  ~AsideTable();
  AsideTable(const AsideTable&) = delete;
  AsideTable& operator=(const AsideTable&) = delete;

  // An entry for the file, of which there is no part under `part_name` (cache.A2). Nothing if there
  // is one, or if all entries of this process are taken.
  Result<std::optional<AsideEntry>> enter(std::uint64_t device, std::uint64_t inode,
                                          const std::string& part_name);

  // Whether it still has its name; if not, others don't know of the files that stand aside here.
  Status check() const;
  std::uint64_t id() const { return header_->id; }
  // The shared pointer of an entry of any process; null if there is no such entry.
  std::uint64_t* pointer(std::uint32_t number) const;

 private:
  friend class AsideEntry;
  friend class AsideMaking;
  AsideTable(Directory directory, FileHandle file, FileHandle lock);
  static Result<std::shared_ptr<AsideTable>> join(const Directory& locked, FileHandle lock);
  Status map(bool anew);
  Status begin_anew();
  Status take_number();
  void leave(const Directory& locked);
  void clear_dead();
  bool clear_if_dead(std::uint32_t owner);
  AsideEntryFormat* entries_of(std::uint32_t owner) const;
  std::uint64_t process_of(std::uint32_t owner) const {
    return word(owners_table_[owner - 1].process).load(std::memory_order_acquire);
  }
  void give(AsideEntryFormat& entry);

  Directory directory_;
  FileHandle file_;
  FileHandle lock_;  // of the same file, with the locks
  std::string path_;
  std::byte* base_ = nullptr;
  AsideHeaderFormat* header_ = nullptr;
  OwnerFormat* owners_table_ = nullptr;
  std::unique_ptr<PartOwners> owners_;
  std::mutex mutex_;  // of this process's entries
};

// While one exists its file has no access aside, as a part of it is made. Under the lock of the
// directory.
class AsideMaking {
 public:
  struct File {
    std::uint64_t device;
    std::uint64_t inode;
    std::string path;
    bool alone;             // the part can't be shared with processes that have the file aside
    std::uint32_t wait_ms;  // for an access to end
  };
  // `table` may be null: nobody has a file aside. Code::busy if the part can't be shared, and
  // there is somebody, or one does not end its access.
  static Result<std::unique_ptr<AsideMaking>> begin(std::shared_ptr<AsideTable> table,
                                                    const File& file);
  ~AsideMaking();
  AsideMaking(const AsideMaking&) = delete;
  AsideMaking& operator=(const AsideMaking&) = delete;

 private:
  explicit AsideMaking(std::shared_ptr<AsideTable> table) : table_(std::move(table)) {}
  Status call_off(const File& file);
  Status await(std::uint32_t owner, AsideEntryFormat& entry, const File& file);
  std::shared_ptr<AsideTable> table_;
};

}  // namespace perdure
