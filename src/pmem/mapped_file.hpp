// SPDX-License-Identifier: BSD-3-Clause
//
// A locked file and its mapping at a base address that never changes; grows, allocating.
//
// Failure: grow() leaves size and bytes as they were. A file that another program truncates while
// it is mapped raises SIGBUS at the next access; the lock keeps Perdure's own processes from it,
// and check() notices it where it is called (grow(), and the fences of ordinary files).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "pmem/address_range.hpp"
#include "pmem/device.hpp"
#include "pmem/file_device.hpp"
#include "pmem/media_guard.hpp"
#include "pmem/page_table_filler.hpp"

namespace perdure {

struct OpenFile {
  FileHandle handle;
  FileHandle lock;  // opened by itself: a lock of what is mapped would stay with forked children
  std::string path;
  FileKind kind = FileKind::ordinary;  // never automatic
  PersistenceClass persistence = PersistenceClass::process_crash;
  bool read_only = false;
  bool shared = false;  // holes stay until allocate()
  bool may_be_cut = false;
  bool copied_first = false;  // new pages of tmpfs stay untouched until touch_pages()
};

class MappedFile {
 public:
  // Maps the whole file as it is. Pages of a large file on tmpfs are mapped in the background.
  static Result<MappedFile> map(OpenFile file);

  const OpenFile& file() const { return file_; }
  void renamed(const std::string& path) { file_.path = path; }
  std::byte* base() const { return addresses_.base(); }
  std::uint64_t size_bytes() const { return size_; }

  // Grows to `size_bytes` rounded up to pages, allocated and mapped; all but ordinary
  // files are touched.
  Status grow(std::uint64_t size_bytes);
  // Gives [offset, offset + count) blocks; returns its pages' zeros.
  Status allocate(std::uint64_t offset, std::uint64_t count);
  // The whole pages of [offset, offset + count) give their blocks back, the rest becomes zeros.
  Status discard(std::uint64_t offset, std::uint64_t count);
  std::uint64_t allocated_bytes() const;
  std::uint64_t next_allocated(std::uint64_t offset) const;
  std::uint64_t free_bytes() const;
  // What grew is allocated, and nobody has touched it but by write().
  bool is_untouched(std::uint64_t offset, std::uint64_t count) const {
    return file_.copied_first && offset >= untouched_ && count <= size_ - offset;
  }
  // Stores to untouched pages, which need neither zeros nor an entry in the page table for it.
  // False: not all of it was stored.
  bool write(std::uint64_t offset, const void* source, std::uint64_t count) const;
  bool copy_from(std::uint64_t offset, int fd, std::uint64_t from, std::uint64_t count) const;
  // From now on grow() touches pages; those of before are touched in the background, if many.
  void touch_pages();
  // An error when the file on disk is shorter than its mapping or was removed.
  Status check() const;

 private:
  MappedFile(OpenFile file, AddressRange addresses)
      : file_(std::move(file)), addresses_(std::move(addresses)) {}
  Status map_existing(std::uint64_t size_bytes);
  enum class Pages : std::uint8_t { fresh, written };
  Status map_pages(std::uint64_t begin, std::uint64_t end, Pages pages);

  OpenFile file_;
  AddressRange addresses_;
  std::uint64_t size_ = 0;
  std::uint64_t untouched_ = 0;              // copied first: from here on
  std::unique_ptr<GuardedRange> guard_;      // if it may be cut
  std::unique_ptr<PageTableFiller> filler_;  // of the file as it was; ends before the mapping
};

// Whether the file can be mapped with MAP_SYNC: 0, or the errno of the refusal.
int probe_map_sync(int fd, bool read_only);

}  // namespace perdure
