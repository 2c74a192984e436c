// SPDX-License-Identifier: BSD-3-Clause
//
// Level file: a sealed image or guard (sealed.hpp) that a rank keeps of one version beside its
// pool, in the pool's directory. A rank has up to three files of each kind, and makes the next
// version in one that nobody needs.
//
// A file whose state word is right is whole (sealed.hpp, levels.V1): begin() clears the word,
// durably, before anything else is stored; complete() stores it after a fence, when header, payload
// and their checksums are durable.
//
// Threads: one at a time for each file, not always the same. Failure: a file whose begin() or
// complete() failed has no contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/files.hpp"
#include "base/status.hpp"
#include "levels/sealed.hpp"
#include "pmem/device.hpp"

namespace perdure {

constexpr std::uint32_t level_files_max = 3;  // of a kind and rank

std::string level_file_name(SealedKind kind, std::uint32_t rank, std::uint32_t slot);
struct LevelFileName {
  SealedKind kind = SealedKind::image;
  std::uint32_t rank = 0;
  std::uint32_t slot = 0;
};
// Absent: the name is not that of a level file.
std::optional<LevelFileName> parse_level_file_name(const std::string& name);

class LevelFile {
 public:
  // Opens it, and makes it if there is none; locked as a rank's file of the pool is.
  // Code::newer_format if a newer Perdure wrote it.
  static Result<LevelFile> open_or_make(const Directory& directory, const LevelFileName& name,
                                        Trust trust);
  // For reading only, without a lock. Code::not_found. `may_be_cut` for who only looks at it, as of
  // a file device: what is cut off meanwhile is damaged.
  static Result<LevelFile> open(const Directory& directory, const LevelFileName& name, Trust trust,
                                bool may_be_cut = false);
  // On a device that is at hand: an emulated one, or one that a test made.
  static Result<LevelFile> on_device(std::unique_ptr<Device> device, const LevelFileName& name,
                                     std::string path);

  bool whole() const { return whole_; }
  // Of one that is whole.
  const SealedHeader& header() const { return seal_.header; }
  const Seal& seal() const { return seal_; }
  const std::string& path() const { return path_; }
  // Of a file that was opened for reading: its contents, which another process may have changed
  // since. An error, or no contents, may also mean that it has to be opened again.
  Status read_again(const LevelFileName& name);
  // Durable when it returns: the file has no contents.
  Status clear();

  // Room for a payload, for which begin() then need not wait. What the file holds stays.
  Status reserve(std::uint64_t payload_bytes);
  // The same, and nothing of what was there counts any more.
  Status begin(std::uint64_t payload_bytes);
  // Past the cache, after begin(); each chunk once, in any order. `offset` is a multiple of
  // sealed_chunk_bytes, and so is the size unless it reaches the payload's end.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  // All chunks were written. `header.payload_bytes` is that of begin().
  Status complete(const SealedHeader& header);

  // Of a file that is whole; else none.
  std::span<const std::byte> payload() const;
  // Seal::table_checksum() of what is there or was written.
  std::uint64_t table_checksum() const { return seal_.table_checksum(); }
  // Of a file that is whole. Code::damaged names the byte range. All of it, or the chunks that
  // [offset, offset + count) touches.
  Status verify() const { return verify(0, payload_bytes()); }
  Status verify(std::uint64_t offset, std::uint64_t count) const;
  // The same of the chunk that begins there, with a copy of it, which is what was compared.
  Status read_chunk(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  LevelFile(std::unique_ptr<Device> device, std::string path);
  std::uint64_t payload_bytes() const { return seal_.header.payload_bytes; }
  Status read_header(const LevelFileName& name);
  void forget();
  Status declare(std::uint64_t state_word);
  std::uint64_t store(std::uint64_t offset, std::span<const std::byte> bytes);
  Status verify_chunk(std::size_t chunk, std::byte* copy) const;

  std::unique_ptr<Device> device_;
  std::string path_;
  Seal seal_;           // of what is there, or is being written
  bool whole_ = false;  // it is there
  std::size_t chunks_to_come_ = 0;
  std::thread::id writer_;  // none: several
};

// Durably: a job's images and guards in this directory of versions above `held` have no contents
// any more, of the ranks for which `of` holds. What another process uses is an error.
Status clear_newer(const Directory& directory, Trust trust, const JobId& job, std::uint64_t held,
                   const std::function<bool(std::uint32_t rank)>& of);

}  // namespace perdure
