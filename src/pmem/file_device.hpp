// SPDX-License-Identifier: BSD-3-Clause
//
// A device on a file: DAX (MAP_SYNC), tmpfs, or an ordinary file on a block device.
//
//   DAX      mapped with MAP_SYNC; flushed by the processor; survives power failure
//   tmpfs    mapped; flushed by the processor (so that costs are those of byte-addressable
//            memory); survives the death of processes only, and says so
//   file     mapped; flush() notes the range, fence() is msync + fdatasync of what was noted;
//            survives power failure as far as the file system does
//
// The file is locked for this process while it is open, so that ranks of a dying job and of its
// successor never write the same pool; a lock that is held is waited for at most
// `lock_wait_ms`, then Code::busy names the holder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure {

enum class FileKind : std::uint8_t {
  automatic,  // DAX if MAP_SYNC is granted, tmpfs by its magic number, else an ordinary file
  dax,        // refuse, with the reason, when MAP_SYNC is not granted
  tmpfs,
  ordinary,
};

struct FileDeviceOptions {
  FileKind kind = FileKind::automatic;
  bool create = false;     // the file must not exist yet; otherwise it must
  bool read_only = false;  // takes no lock, and no verb that writes may be called
  // Read-only: what another program cuts off meanwhile reads as zeros, and Device::check() says so
  // from then on. Without it that raises SIGBUS.
  bool may_be_cut = false;
  std::uint32_t lock_wait_ms = 10000;
  Trust trust = Trust::own;  // whose file and directory may be (base/files.hpp)
  // Several processes of the node open the file: it is not locked, and the holes of a file that is
  // created with `sparse_bytes` stay until Device::allocate() fills them.
  bool shared = false;
  std::uint64_t sparse_bytes = 0;
  // Most of what is stored first comes by copy(): new pages are allocated and not touched until
  // Device::touch_pages(). Of a file on tmpfs; others don't know it.
  bool copied_first = false;
};

// Opens or creates `path`; a new file has size 0 until resize(). resize() allocates blocks
// (posix_fallocate), maps them at a fixed place after the old ones and, on DAX and tmpfs, touches
// every page once. A file that another program cuts short while it is open raises SIGBUS at the
// next access; resize(), and the fences of ordinary files, report it where they come first.
Result<std::unique_ptr<Device>> open_file_device(const std::string& path,
                                                 const FileDeviceOptions& options);

}  // namespace perdure
