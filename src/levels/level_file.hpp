// SPDX-License-Identifier: BSD-3-Clause
//
// Level file: what a rank keeps of one version beside its pool, in the pool's directory. There are
// two kinds.
//
//   image  this rank's version itself (pool/image.hpp), so that the pool may forget it
//   guard  what this rank keeps of other ranks' images: redundancy (redundancy.hpp)
//
// A rank has up to three files of each kind, and makes the next version in one that nobody needs.
//
// Invariants
//   levels.V1  A file whose state word is right is whole: header, payload and their checksums are
//       durable. begin() clears the word, durably, before anything else is stored; complete()
//       stores it after a fence.
//   levels.V2  What is read is not trusted: a header that is wrong makes a file without contents,
//       and verify() compares the payload with its checksums.
//
// Threads: one at a time for each file, not always the same. Failure: a file whose begin() or
// complete() failed has no contents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pmem/region_format.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record.hpp"

namespace perdure {

enum class LevelFileKind : std::uint32_t { image = 1, guard = 2 };

// A version of a job, of which incarnation. After a restart from an older version its number may be
// given again, in a higher incarnation.
struct VersionId {
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;
  auto operator<=>(const VersionId&) const = default;  // by age
};
// Of a catalogue, or of a header with what put_origin() stores.
template <typename Format>
VersionId id_of(const Format& format) {
  return {format.incarnation, format.version};
}

// What the headers of level_file_format.hpp, node_file_format.hpp and lease_format.hpp have of the
// job.
template <typename Format>
void put_job(Format& format, const JobRecord& job) {
  std::copy_n(job.job_id.words, 2, format.job_id);
  std::copy_n(job.lineage.words, 2, format.lineage);
  PERDURE_ASSERT(job.job_name.size() < job_name_bytes);
  std::memcpy(format.job_name, job.job_name.data(), job.job_name.size());
  format.job_created_ns = job.created_ns;
  format.ranks = job.ranks;
}
// The same, and the version.
template <typename Format>
void put_origin(Format& format, const JobRecord& job, VersionId id) {
  put_job(format, job);
  format.version = id.version;
  format.incarnation = id.incarnation;
}
template <typename Format>
bool has_origin(const Format& format) {
  return format.ranks > 0 && format.ranks <= ranks_max &&
         format.job_name[job_name_bytes - 1] == '\0';
}
template <typename Format>
JobRecord job_of(const Format& format) {
  const JobId id{{format.job_id[0], format.job_id[1]}};
  const JobId lineage{{format.lineage[0], format.lineage[1]}};
  return {id, format.job_name, format.ranks, format.job_created_ns, {}, lineage};
}
// Whether `id` is newer contents than `held`. A version that is given to other nodes again after a
// restart is the same in a higher incarnation. Another version of the same number cannot be meant:
// it would have taken the slot of `held`.
inline bool is_newer(VersionId id, VersionId held) {
  return id > held && id.version != held.version;
}

struct LevelFileHeader {
  LevelFileKind kind = LevelFileKind::image;
  JobRecord job;  // without a place
  std::uint32_t rank = 0;
  VersionId id;
  std::uint64_t payload_bytes = 0;
};

constexpr std::uint32_t level_files_max = 3;  // of a kind and rank

std::string level_file_name(LevelFileKind kind, std::uint32_t rank, std::uint32_t slot);
struct LevelFileName {
  LevelFileKind kind = LevelFileKind::image;
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

  // Absent: it is not whole.
  const std::optional<LevelFileHeader>& header() const { return header_; }
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
  // level_chunk_bytes, and so is the size unless it reaches the payload's end.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  // All chunks were written. `header.payload_bytes` is that of begin().
  Status complete(const LevelFileHeader& header);

  // Of a file that is whole; else none.
  std::span<const std::byte> payload() const;
  // CRC-64 of the table of the chunks' checksums: tells two payloads of the same length apart.
  std::uint64_t table_checksum() const;
  // Of a file that is whole. Code::damaged names the byte range. All of it, or the chunks that
  // [offset, offset + count) touches.
  Status verify() const { return verify(0, payload_bytes_); }
  Status verify(std::uint64_t offset, std::uint64_t count) const;
  // The same of the chunk that begins there. Returns its CRC-64.
  Result<std::uint64_t> check_chunk(std::uint64_t offset) const;
  // The same with a copy of it, which is what was compared.
  Result<std::uint64_t> read_chunk(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  LevelFile(std::unique_ptr<Device> device, std::string path);
  Status read_header(const LevelFileName& name);
  Status declare(std::uint64_t state_word);
  std::uint64_t store(std::uint64_t offset, std::span<const std::byte> bytes);
  Status verify_chunk(std::size_t chunk, std::byte* copy) const;

  std::unique_ptr<Device> device_;
  std::string path_;
  std::optional<LevelFileHeader> header_;
  std::uint64_t payload_bytes_ = 0;
  std::vector<std::uint64_t> checksums_;  // by chunk
  std::size_t chunks_to_come_ = 0;
  std::thread::id writer_;  // none: several
};

// Durably: a job's images and guards in this directory of versions above `held` have no contents
// any more, of the ranks for which `of` holds. What another process uses is an error.
Status clear_newer(const Directory& directory, Trust trust, const JobId& job, std::uint64_t held,
                   const std::function<bool(std::uint32_t rank)>& of);

}  // namespace perdure
