// SPDX-License-Identifier: BSD-3-Clause
//
// Backing file: the file that is cached, on whatever file system it is, read and written in large
// pieces through the kernel.
//
// Through the kernel and not through MPI-IO, as the paper does, because then any thread can write
// back, at any thread level, and so can recovery without MPI. File systems that only an MPI-IO
// driver reaches ("daos:") are not cached.
//
// Threads: any. Failure: a Status that names the path; what was written before it stays written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "base/status.hpp"
#include "parts/file_stamp.hpp"

namespace perdure {

// What keeps the bytes that are read from a file again, or were just written.
enum class FileMedium : std::uint8_t {
  memory,  // the file system itself is nothing else
  local,   // the kernel, in front of a disk
  other,   // who knows: a server, or a process of this node
};

class BackingFile {
 public:
  enum class Access { read, write, read_write };
  static Result<BackingFile> open(const std::string& path, Access access,
                                  Links links = Links::followed);

  // A new file, for reading and writing. Code::wrong_state if there is one of that name.
  static Result<BackingFile> make(const std::string& path);

  // Allows what `other`, the same file, allows; whoever uses this one meanwhile is not disturbed.
  Status take_access(const BackingFile& other);

  Access access() const { return access_; }
  const std::string& path() const { return path_; }
  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }

  FileMedium medium() const;
  Result<std::uint64_t> size_bytes() const;
  Result<FileStamp> stamp() const;
  // What lies beyond the end of the file reads as zeros.
  Status read(std::uint64_t offset, void* to, std::size_t bytes) const;
  // As many as there are before the end of the file.
  Result<std::size_t> read_some(std::uint64_t offset, void* to, std::size_t bytes) const;
  Status write(std::uint64_t offset, const void* from, std::size_t bytes) const;
  Status set_size(std::uint64_t bytes) const;
  // All of `other`, its size and its permissions; holes stay holes where pages are zeros.
  Status copy_from(const BackingFile& other) const;
  // Not smaller than it is.
  Status set_at_least(std::uint64_t bytes) const;
  // Room for the first so many bytes, which the file has then at least; those it had stay.
  Status allocate(std::uint64_t bytes) const;
  // Returns when what was written, by any process of this node, is durable.
  Status sync() const;
  // The same of bytes and size only, without the times.
  Status sync_data() const;
  // How many of these two had failed when sync_after() said so last.
  std::uint64_t failures_reported() const { return failures_->reported.load(); }
  // As sync(), and fails if any of them failed since failures_reported() was `reported`: the kernel
  // says once by a descriptor what it could not write, to whichever call comes first.
  Status sync_after(std::uint64_t reported) const;
  // What the close of a file does that was written to: network file systems send what they hold,
  // and report what they could not write. Nothing need be durable.
  Status hand_over() const;

 private:
  // One call at a time: a failure is counted before the next one begins, which hears nothing of it.
  struct Failures {
    std::mutex mutex;
    std::uint64_t count = 0;
    std::atomic<std::uint64_t> reported{0};
  };

  BackingFile(FileHandle handle, std::string path) : handle_(std::move(handle)), path_(path) {}
  // By whoever has the mutex of the failures.
  Status sync_by(int (*call)(int), const char* name) const;

  FileHandle handle_;
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  Access access_ = Access::read;
  std::unique_ptr<Failures> failures_ = std::make_unique<Failures>();
};

}  // namespace perdure
