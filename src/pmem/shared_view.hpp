// SPDX-License-Identifier: BSD-3-Clause
//
// Shared view: part of a device's file, mapped a second time at an address that somebody else
// reserved, or in another process of the node. All views and the device are the same bytes; what is
// stored through a view becomes durable when the device's owner flushes the same range there.
//
// Threads: values. Failure: a view that can't be had leaves the addresses as they were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure {

// Tells one file of a node from another.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
Result<FileIdentity> identify_file(const std::string& path);

// A whole number of pages of a file.
struct FilePages {
  DeviceFile file;
  FileIdentity identity;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool writable = true;
};

// The file that the pages are of; Code::foreign if the path leads to another one by now.
Result<FileHandle> open_shared_file(const FilePages& pages);

// Maps the pages at `address`, in place of what is there; a multiple of the page size. With
// `address` null the kernel chooses. `populate` touches them all now.
Result<std::byte*> map_shared_view(const FilePages& pages, std::byte* address, bool populate);

// Puts empty memory in the place of a view, for an owner of the addresses that will use them again.
Status cover_shared_view(std::byte* address, std::uint64_t bytes);
// Gives the addresses back.
void unmap_shared_view(std::byte* address, std::uint64_t bytes);

constexpr std::uint64_t view_page_bytes = 4096;

}  // namespace perdure
