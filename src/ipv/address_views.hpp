// SPDX-License-Identifier: BSD-3-Clause
//
// Address views: what an object's fixed address shows. Places are ranges of file pages (a copy in
// the pool, or memory); of each there are two views in reserved addresses, their homes: one that
// can only be read and one that can be written. One view at a time is at the object's address.
//
// A view moves with its page tables, so that nothing is faulted in again: it goes back to its home
// with MREMAP_DONTUNMAP, which leaves the same pages mapped where it was, and the next one takes
// its place. At no moment is there nothing at the address that another thread reads, or that
// another thread's mmap() could take. Where the kernel can't do that (before 5.13), the pages are
// mapped anew in one system call, which costs a fault each.
//
// Threads: one call at a time. show() and leave() use system calls only, so that a fault handler
// may call them; readers may go on meanwhile. Failure: the address keeps what it showed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "pmem/shared_view.hpp"

namespace perdure {

enum class ViewAccess : std::uint8_t { read, write };

class AddressViews {
 public:
  // `address` is a multiple of view_page_bytes, `bytes` are whole pages. Nothing changes there
  // before the first show(). `move` false: as on an old kernel.
  AddressViews(std::byte* address, std::uint64_t bytes, bool move = true);
  ~AddressViews();  // frees the homes; the address keeps what it shows
  AddressViews(const AddressViews&) = delete;
  AddressViews& operator=(const AddressViews&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  bool moves() const { return move_; }
  Result<unsigned> add_place(FilePages pages);

  // False, with errno, if the kernel refuses.
  bool show(unsigned place, ViewAccess access) noexcept;
  // Ordinary memory with the contents that the address shows now takes its place.
  bool leave() noexcept;

 private:
  struct Place {
    std::byte* homes[2];  // by access
    FileHandle file;
    std::uint64_t offset;
    int flags;
  };
  static constexpr unsigned none = ~0U;

  Result<std::byte*> make_home(FilePages pages, ViewAccess access);
  bool move_view(std::byte* from, std::byte* to) const noexcept;
  bool map_anew(unsigned view) const noexcept;
  std::byte* home_of(unsigned view) const { return places_[view / 2].homes[view % 2]; }

  std::byte* address_;
  std::uint64_t bytes_;
  bool move_;
  unsigned shown_ = none;  // 2 * place + access
  std::vector<Place> places_;
  struct Reserved {
    std::byte* base;
    std::uint64_t bytes;
  };
  std::vector<Reserved> reserved_;
};

// Memory of this process as file pages, zeroed; `file` keeps it.
Result<FilePages> make_memory_pages(std::uint64_t bytes, FileHandle& file);

}  // namespace perdure
