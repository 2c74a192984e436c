// SPDX-License-Identifier: BSD-3-Clause
//
// Level file: what becomes durable in which order (levels.V1).
//
//   reserve()   room for the payload, if it is called
//   begin()     state word: 0                           fence 1
//               room for the payload
//   write()     payload, past the cache
//   complete()  header, table of checksums              fence 2
//               state word: the header's checksum       fence 3
//
// The state word is 8 aligned bytes, so a crash leaves it as it was or as it was to be (device.hpp,
// pmem.D2). Until fence 1 nothing else has changed but the file's length, which nobody believes:
// the old contents are whole, believed or not. From there to fence 2 the word on the medium is 0,
// whatever is there of the rest. After fence 2 all that the word vouches for is durable, so it does
// not matter from when on the word itself is.
//
// A fence orders what its own thread flushed (pmem.D4). If several threads wrote the payload, the
// one that completes it flushes all of it again, which costs little where the lines have left the
// caches.
#include "levels/level_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "base/data_checksum.hpp"
#include "levels/level_file_format.hpp"
#include "pmem/file_device.hpp"
#include "pmem/media_guard.hpp"

namespace perdure {
namespace {

const char* kind_name(LevelFileKind kind) {
  return kind == LevelFileKind::image ? "image" : "guard";
}

std::uint64_t table_offset(std::uint64_t payload_bytes) {
  return level_payload_offset + align_up(payload_bytes, sizeof(std::uint64_t));
}

std::uint64_t file_bytes(std::uint64_t payload_bytes) {
  return table_offset(payload_bytes) + chunks_of(payload_bytes) * sizeof(std::uint64_t);
}

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table, std::uint64_t seed) {
  return crc64(table.data(), table.size() * sizeof table[0], seed);
}

// Never 0, because that is the state word of a file without contents.
std::uint64_t header_checksum(const LevelFileHeaderFormat& format,
                              const std::vector<std::uint64_t>& table) {
  const std::uint64_t checksum =
      checksum_of(table, crc64(&format, offsetof(LevelFileHeaderFormat, checksum)));
  return std::max<std::uint64_t>(checksum, 1);
}

LevelFileHeaderFormat format_of(const LevelFileHeader& header,
                                const std::vector<std::uint64_t>& table) {
  LevelFileHeaderFormat format{};
  format.magic = level_file_magic;
  format.format_version = level_file_version;
  format.kind = static_cast<std::uint32_t>(header.kind);
  format.rank = header.rank;
  put_origin(format, header.job, header.id);
  format.payload_bytes = header.payload_bytes;
  format.checksum = header_checksum(format, table);
  return format;
}

// levels.V2: what a header with the right checksum says; `name` is that of its file.
bool believable(const LevelFileHeaderFormat& format, const LevelFileName& name) {
  return format.format_version == level_file_version &&
         format.kind == static_cast<std::uint32_t>(name.kind) && format.rank == name.rank &&
         format.rank < format.ranks && has_origin(format);
}

LevelFileHeader header_of(const LevelFileHeaderFormat& format) {
  return {static_cast<LevelFileKind>(format.kind), job_of(format), format.rank, id_of(format),
          format.payload_bytes};
}

struct Seen {
  std::uint64_t state_word = 0;
  LevelFileHeaderFormat format{};
  std::vector<std::uint64_t> table;
};

// levels.V2: state word, header and table, if they fit each other and the device.
std::optional<Seen> look(const Device& device) {
  const std::byte* const base = device.base();
  const std::uint64_t size = device.size_bytes();
  if (size < level_payload_offset || first_unreadable(base, level_payload_offset)) return {};
  Seen seen;
  std::memcpy(&seen.state_word, base, sizeof seen.state_word);
  std::memcpy(&seen.format, base + level_header_offset, sizeof seen.format);
  const std::uint64_t payload_bytes = seen.format.payload_bytes;
  if (seen.state_word == 0 || seen.state_word != seen.format.checksum ||
      seen.format.magic != level_file_magic || payload_bytes > size ||
      file_bytes(payload_bytes) > size) {
    return {};
  }
  seen.table.resize(chunks_of(payload_bytes));
  const std::uint64_t table_bytes = seen.table.size() * sizeof seen.table[0];
  const std::byte* const table = base + table_offset(payload_bytes);
  if (first_unreadable(table, table_bytes)) return {};
  if (table_bytes != 0) std::memcpy(seen.table.data(), table, table_bytes);
  if (header_checksum(seen.format, seen.table) != seen.state_word) return {};
  return seen;
}

}  // namespace

std::string level_file_name(LevelFileKind kind, std::uint32_t rank, std::uint32_t slot) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%s-%05u.%u", kind_name(kind), rank, slot);
  return name.data();
}

std::optional<LevelFileName> parse_level_file_name(const std::string& name) {
  for (const LevelFileKind kind : {LevelFileKind::image, LevelFileKind::guard}) {
    if (!name.starts_with(kind_name(kind))) continue;
    LevelFileName parsed{kind, 0, 0};
    const char* const end = name.data() + name.size();
    const char* at = name.data() + std::strlen(kind_name(kind));
    if (at == end) continue;
    const auto rank = std::from_chars(at + 1, end, parsed.rank);
    if (rank.ec != std::errc() || rank.ptr == end) continue;
    const auto slot = std::from_chars(rank.ptr + 1, end, parsed.slot);
    if (slot.ec != std::errc()) continue;
    if (name == level_file_name(kind, parsed.rank, parsed.slot)) return parsed;
  }
  return std::nullopt;
}

LevelFile::LevelFile(std::unique_ptr<Device> device, std::string path)
    : device_(std::move(device)), path_(std::move(path)) {}

Result<LevelFile> LevelFile::on_device(std::unique_ptr<Device> device, const LevelFileName& name,
                                       std::string path) {
  LevelFile file(std::move(device), std::move(path));
  PERDURE_TRY(file.read_header(name));
  return file;
}

Result<LevelFile> LevelFile::open_or_make(const Directory& directory, const LevelFileName& name,
                                          Trust trust) {
  const std::string file_name = level_file_name(name.kind, name.rank, name.slot);
  const std::string path = directory.path_of(file_name);
  const bool create = !directory.holds(file_name);
  PERDURE_TRY_ASSIGN(auto device, open_file_device(path, {.create = create, .trust = trust}));
  return on_device(std::move(device), name, path);
}

Result<LevelFile> LevelFile::open(const Directory& directory, const LevelFileName& name,
                                  Trust trust, bool may_be_cut) {
  const std::string file_name = level_file_name(name.kind, name.rank, name.slot);
  if (!directory.holds(file_name)) {
    return Status(Code::not_found, directory.path(), " holds no ", file_name);
  }
  const std::string path = directory.path_of(file_name);
  PERDURE_TRY_ASSIGN(
      auto device,
      open_file_device(path, {.read_only = true, .may_be_cut = may_be_cut, .trust = trust}));
  return on_device(std::move(device), name, path);
}

Status LevelFile::read_header(const LevelFileName& name) {
  auto seen = look(*device_);
  if (!seen) return Status::success();
  if (seen->format.format_version > level_file_version) {
    return newer_format(path_, seen->format.format_version, level_file_version);
  }
  if (!believable(seen->format, name)) return Status::success();
  header_ = header_of(seen->format);
  payload_bytes_ = header_->payload_bytes;
  checksums_ = std::move(seen->table);
  return Status::success();
}

Status LevelFile::read_again(const LevelFileName& name) {
  header_.reset();
  payload_bytes_ = 0;
  checksums_.clear();
  PERDURE_TRY(device_->check());
  return read_header(name);
}

Status LevelFile::declare(std::uint64_t state_word) {
  device_->store_word(0, state_word);
  device_->flush(0, sizeof state_word);
  return device_->fence();
}

Status LevelFile::clear() {
  header_.reset();
  payload_bytes_ = 0;
  checksums_.clear();
  // A file that was just made is zeros.
  if (device_->size_bytes() < sizeof(std::uint64_t)) return Status::success();
  return declare(0);
}

Status LevelFile::reserve(std::uint64_t payload_bytes) {
  return device_->resize(file_bytes(payload_bytes));
}

Status LevelFile::begin(std::uint64_t payload_bytes) {
  PERDURE_TRY(clear());  // fence 1
  PERDURE_TRY(reserve(payload_bytes));
  payload_bytes_ = payload_bytes;
  checksums_.assign(chunks_of(payload_bytes), 0);
  chunks_to_come_ = checksums_.size();
  return Status::success();
}

void LevelFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  PERDURE_ASSERT(!header_ && offset % level_chunk_bytes == 0 && offset <= payload_bytes_ &&
                 bytes.size() <= payload_bytes_ - offset);
  PERDURE_ASSERT(bytes.size() % level_chunk_bytes == 0 || offset + bytes.size() == payload_bytes_);
  if (chunks_to_come_ == checksums_.size()) writer_ = std::this_thread::get_id();
  if (writer_ != std::this_thread::get_id()) writer_ = {};
  for (std::size_t chunk = offset / level_chunk_bytes; !bytes.empty(); ++chunk) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), level_chunk_bytes));
    PERDURE_ASSERT(chunks_to_come_-- > 0);
    checksums_[chunk] = store(level_payload_offset + chunk * level_chunk_bytes, part);
    bytes = bytes.subspan(part.size());
  }
}

// Each piece is copied while the first cache has it from its checksum. Returns the checksum.
std::uint64_t LevelFile::store(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::uint64_t checksum = 0;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), data_piece_bytes));
    checksum = crc64(piece.data(), piece.size(), checksum);
    device_->copy(offset, piece.data(), piece.size());
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return checksum;
}

Status LevelFile::complete(const LevelFileHeader& header) {
  PERDURE_ASSERT(!header_ && chunks_to_come_ == 0 && header.payload_bytes == payload_bytes_);
  const LevelFileHeaderFormat format = format_of(header, checksums_);
  device_->copy(level_header_offset, &format, sizeof format);
  device_->copy(table_offset(payload_bytes_), checksums_.data(),
                checksums_.size() * sizeof checksums_[0]);
  if (writer_ != std::this_thread::get_id()) device_->flush(level_payload_offset, payload_bytes_);
  PERDURE_TRY(device_->fence());                                       // fence 2
  if (const Status status = declare(format.checksum); !status.ok()) {  // fence 3
    (void)clear();                                                     // the error is the first one
    return status;
  }
  header_ = header_of(format);
  return Status::success();
}

std::span<const std::byte> LevelFile::payload() const {
  if (!header_) return {};
  return {device_->base() + level_payload_offset, payload_bytes_};
}

std::uint64_t LevelFile::table_checksum() const {
  return checksum_of(checksums_, 0);
}

// In pieces, for which memory is read once. `copy`: what they are copied to before their checksum
// is taken of it; null: they are not copied.
Status LevelFile::verify_chunk(std::size_t chunk, std::byte* copy) const {
  const std::uint64_t begin = chunk * level_chunk_bytes;
  const std::uint64_t count = std::min(level_chunk_bytes, payload_bytes_ - begin);
  const std::byte* const bytes = device_->base() + level_payload_offset + begin;
  const char* wrong = nullptr;
  std::uint64_t checksum = 0;
  for (std::uint64_t at = 0; at < count && wrong == nullptr; at += data_piece_bytes) {
    const std::uint64_t piece = std::min<std::uint64_t>(data_piece_bytes, count - at);
    const bool read = copy != nullptr ? copy_readable(copy + at, bytes + at, piece)
                                      : !first_unreadable(bytes + at, piece);
    if (read) {
      checksum = crc64((copy != nullptr ? copy : bytes) + at, piece, checksum);
    } else {
      wrong = " can't be read";
    }
  }
  if (wrong == nullptr && checksum == checksums_[chunk]) return Status::success();
  if (wrong == nullptr) wrong = " do not have their checksum";
  return Status(Code::damaged, path_, ": bytes ", begin, " to ", begin + count - 1, " of version ",
                header_->id.version, wrong);
}

Status LevelFile::verify(std::uint64_t offset, std::uint64_t count) const {
  PERDURE_ASSERT(header_ && offset <= payload_bytes_ && count <= payload_bytes_ - offset);
  for (std::size_t chunk = offset / level_chunk_bytes; chunk < chunks_of(offset + count); ++chunk) {
    if (count != 0) PERDURE_TRY(verify_chunk(chunk, nullptr));
  }
  return Status::success();
}

Result<std::uint64_t> LevelFile::check_chunk(std::uint64_t offset) const {
  PERDURE_ASSERT(header_ && offset % level_chunk_bytes == 0 && offset < payload_bytes_);
  const std::size_t chunk = offset / level_chunk_bytes;
  PERDURE_TRY(verify_chunk(chunk, nullptr));
  return checksums_[chunk];
}

Result<std::uint64_t> LevelFile::read_chunk(std::uint64_t offset, std::span<std::byte> out) const {
  PERDURE_ASSERT(header_ && offset % level_chunk_bytes == 0 && offset < payload_bytes_ &&
                 out.size() == std::min(level_chunk_bytes, payload_bytes_ - offset));
  const std::size_t chunk = offset / level_chunk_bytes;
  PERDURE_TRY(verify_chunk(chunk, out.data()));
  return checksums_[chunk];
}

Status clear_newer(const Directory& directory, Trust trust, const JobId& job, std::uint64_t held,
                   const std::function<bool(std::uint32_t rank)>& of) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    const auto parsed = parse_level_file_name(name);
    if (!parsed || !of(parsed->rank)) continue;
    const auto seen = LevelFile::open(directory, *parsed, trust, true);
    if (!seen.ok() || !seen.value().header()) continue;
    const LevelFileHeader& header = *seen.value().header();
    if (header.job.job_id != job || header.id.version <= held) continue;
    PERDURE_TRY_ASSIGN(auto file, LevelFile::open_or_make(directory, *parsed, trust));
    PERDURE_TRY(file.clear());
  }
  return Status::success();
}

}  // namespace perdure
