// SPDX-License-Identifier: BSD-3-Clause
//
// Stored array: an array of a version, in a rank's file or in an image of it, read in slices
// without mapping the file.
//
// What was read of a rank's file was compared with its checksums, if the array has them: whole
// blocks, and each once while small reads go forward. A slice is all the memory that it takes.
//
// Threads: one at a time. Failure: Code::damaged names the byte range, as verify_and_copy() does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "pool/array_entry.hpp"

namespace perdure {

class StoredArray {
 public:
  static constexpr std::uint64_t slice_bytes = std::uint64_t{256} << 10;  // or a block, if larger

  // `path`: of `file`, for people.
  static Result<StoredArray> open(FileHandle file, std::string path, const ArrayEntry& entry,
                                  std::uint64_t block_bytes);
  // Copies bytes [offset, offset + count) of what the array lies in.
  using Read = std::function<Status(std::uint64_t offset, std::uint64_t count, std::byte* to)>;
  // Of an image, whose own checksums `read` compares; the array begins at `offset`.
  static StoredArray in_image(Read read, std::string path, const ArrayEntry& entry,
                              std::uint64_t offset);

  // Bytes [first, first + count), which it has. Whole blocks are read to where they go, and
  // compared there: with an error, `to` may have what is damaged.
  Status read(std::uint64_t first, std::uint64_t count, std::byte* to);
  // The same in pieces, in order, without a copy of its own; a piece is gone with the next one.
  using Take = std::function<void(std::span<const std::byte> piece)>;
  Status read_pieces(std::uint64_t first, std::uint64_t count, const Take& take);
  std::uint64_t size_bytes() const { return entry_.size_bytes; }
  // Where its bytes are, if they need not be compared with anything: a file, and from where on.
  int file() const { return file_ == nullptr || !table_.empty() ? -1 : file_->fd(); }
  std::uint64_t offset() const { return offset_; }

 private:
  StoredArray(Read read, std::string path, const ArrayEntry& entry, std::uint64_t offset,
              std::uint64_t block_bytes);
  Status read_table();
  Status load(std::uint64_t first, std::uint64_t count);
  Status check_blocks(std::uint64_t begin, std::uint64_t end, const std::byte* bytes) const;
  std::uint64_t whole_blocks(std::uint64_t first, std::uint64_t count) const;
  Status damaged(std::uint64_t begin, std::uint64_t end) const;

  Read read_;
  std::shared_ptr<FileHandle> file_;  // null: an image
  std::string path_;
  ArrayEntry entry_;
  std::uint64_t offset_;  // of its first byte
  std::uint64_t block_bytes_;
  std::uint64_t slice_bytes_;
  std::vector<std::uint64_t> table_;  // of checksums; empty: it has none
  std::vector<std::byte> slice_;
  std::uint64_t begin_ = 0;  // of what the slice holds
  std::uint64_t end_ = 0;
  std::uint64_t ahead_bytes_ = 0;  // as much as was asked for, or more while reads go forward
};

}  // namespace perdure
