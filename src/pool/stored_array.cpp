// SPDX-License-Identifier: BSD-3-Clause
#include "pool/stored_array.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/checksum.hpp"
#include "pmem/region.hpp"
#include "pool/block_checksum.hpp"

namespace perdure {

namespace {

constexpr std::uint64_t image_block_bytes = std::uint64_t{64} << 10;
constexpr std::uint64_t direct_bytes = std::uint64_t{8} << 10;

Status read_file(const FileHandle& file, const std::string& path, std::uint64_t offset,
                 std::uint64_t count, std::byte* to) {
  for (std::uint64_t got = 0; got < count;) {
    const ssize_t bytes =
        ::pread(file.fd(), to + got, count - got, static_cast<off_t>(offset + got));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_status("read " + path, errno);
    if (bytes == 0) {
      return Status(Code::damaged, path, " was cut: it has no byte ", offset + got);
    }
    got += static_cast<std::uint64_t>(bytes);
  }
  return Status::success();
}

}  // namespace

StoredArray::StoredArray(Read read, std::string path, const ArrayEntry& entry, std::uint64_t offset,
                         std::uint64_t block_bytes)
    : read_(std::move(read)),
      path_(std::move(path)),
      entry_(entry),
      offset_(offset),
      block_bytes_(block_bytes),
      slice_bytes_(align_up(slice_bytes, block_bytes)) {}

Result<StoredArray> StoredArray::open(FileHandle file, std::string path, const ArrayEntry& entry,
                                      std::uint64_t block_bytes) {
  const auto held = std::make_shared<FileHandle>(std::move(file));
  const auto read = [held, path](std::uint64_t offset, std::uint64_t count, std::byte* to) {
    return read_file(*held, path, offset, count, to);
  };
  StoredArray array(read, std::move(path), entry, entry.copy_offset(entry.copy), block_bytes);
  array.file_ = held;
  if (entry.shape.checksums) PERDURE_TRY(array.read_table());
  return array;
}

StoredArray StoredArray::in_image(Read read, std::string path, const ArrayEntry& entry,
                                  std::uint64_t offset) {
  return {std::move(read), std::move(path), entry, offset, image_block_bytes};
}

Status StoredArray::damaged(std::uint64_t begin, std::uint64_t end) const {
  return Status(Code::damaged, path_, ": array ", quoted(entry_.name), ": bytes ", begin, " to ",
                end, " are not what was committed: a checksum is wrong");
}

Status StoredArray::read_table() {
  table_.resize(block_count(entry_.size_bytes, block_bytes_));
  const std::uint64_t bytes = table_.size() * sizeof table_[0];
  PERDURE_TRY(
      read_(entry_.table_offset(entry_.copy), bytes, reinterpret_cast<std::byte*>(table_.data())));
  if (crc64(table_.data(), bytes) == entry_.table_checksum) return Status::success();
  return Status(Code::damaged, path_, ": array ", quoted(entry_.name),
                ": its table of checksums is damaged");
}

// Bytes [begin, end) of the array, which are whole blocks, lie at `bytes`.
Status StoredArray::check_blocks(std::uint64_t begin, std::uint64_t end,
                                 const std::byte* bytes) const {
  if (table_.empty()) return Status::success();
  for (std::uint64_t at = begin; at < end; at += block_bytes_) {
    const std::uint64_t count = std::min(block_bytes_, end - at);
    const std::byte* const block = bytes + (at - begin);
    if (block_checksum(entry_.checksum, block_bytes_, block, count) != table_[at / block_bytes_]) {
      return damaged(at, at + count);
    }
  }
  return Status::success();
}

// What is asked for, as whole blocks, and more of what follows if it follows what was read before.
Status StoredArray::load(std::uint64_t first, std::uint64_t count) {
  const bool forward = end_ != 0 && first >= end_ && first - end_ < block_bytes_;
  ahead_bytes_ = forward ? std::min(slice_bytes_, 2 * ahead_bytes_) : block_bytes_;
  const std::uint64_t begin = first / block_bytes_ * block_bytes_;
  const std::uint64_t wanted =
      std::max(first + std::min(count, slice_bytes_) - begin, ahead_bytes_);
  const std::uint64_t bytes = std::min(align_up(wanted, block_bytes_), slice_bytes_);
  ahead_bytes_ = bytes;
  end_ = 0;
  slice_.resize(slice_bytes_);
  const std::uint64_t end = std::min(begin + bytes, entry_.size_bytes);
  PERDURE_TRY(read_(offset_ + begin, end - begin, slice_.data()));
  begin_ = begin;
  end_ = end;
  const Status whole = check_blocks(begin_, end_, slice_.data());
  if (!whole.ok()) end_ = 0;
  return whole;
}

Status StoredArray::read(std::uint64_t first, std::uint64_t count, std::byte* to) {
  // Where nothing is compared here a slice would be one more copy of a long run.
  if (table_.empty() && count >= direct_bytes) return read_(offset_ + first, count, to);
  const auto take = [&to](std::span<const std::byte> piece) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  };
  while (count > 0) {
    const std::uint64_t to_border = block_bytes_ - first % block_bytes_;
    const std::uint64_t direct = to_border == block_bytes_ ? whole_blocks(first, count) : 0;
    const std::uint64_t bytes = direct != 0 ? direct : std::min(count, to_border);
    if (direct != 0) {
      PERDURE_TRY(read_(offset_ + first, bytes, to));
      PERDURE_TRY(check_blocks(first, first + bytes, to));
      to += bytes;
    } else {
      PERDURE_TRY(read_pieces(first, bytes, take));
    }
    first += bytes;
    count -= bytes;
  }
  return Status::success();
}

// As many of `count` bytes from a block's first one on as are whole blocks; a slice at most, whose
// checksums find it in the cache.
std::uint64_t StoredArray::whole_blocks(std::uint64_t first, std::uint64_t count) const {
  if (first + count == entry_.size_bytes && count <= slice_bytes_) return count;
  return std::min(count / block_bytes_ * block_bytes_, slice_bytes_);
}

Status StoredArray::read_pieces(std::uint64_t first, std::uint64_t count, const Take& take) {
  while (count > 0) {
    if (first < begin_ || first >= end_) PERDURE_TRY(load(first, count));
    const std::uint64_t bytes = std::min(count, end_ - first);
    take({slice_.data() + (first - begin_), bytes});
    first += bytes;
    count -= bytes;
  }
  return Status::success();
}

}  // namespace perdure
