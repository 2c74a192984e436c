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
#include "pmem/file_device.hpp"
#include "pmem/media_guard.hpp"

namespace perdure {
namespace {

const char* kind_name(SealedKind kind) {
  return kind == SealedKind::image ? "image" : "guard";
}

}  // namespace

std::string level_file_name(SealedKind kind, std::uint32_t rank, std::uint32_t slot) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%s-%05u.%u", kind_name(kind), rank, slot);
  return name.data();
}

std::optional<LevelFileName> parse_level_file_name(const std::string& name) {
  for (const SealedKind kind : {SealedKind::image, SealedKind::guard}) {
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
  const auto read = [this](std::uint64_t offset, std::span<std::byte> out) {
    const bool readable = copy_readable(out.data(), device_->base() + offset, out.size());
    return readable ? Status::success() : Status(Code::damaged, path_, " can't be read");
  };
  PERDURE_TRY_ASSIGN(auto seen,
                     read_seal(path_, device_->size_bytes(), name.kind, name.rank, read));
  whole_ = seen.has_value();
  seal_ = whole_ ? std::move(*seen) : Seal{};
  return Status::success();
}

Status LevelFile::read_again(const LevelFileName& name) {
  forget();
  PERDURE_TRY(device_->check());
  return read_header(name);
}

void LevelFile::forget() {
  whole_ = false;
  seal_ = {};
}

Status LevelFile::declare(std::uint64_t state_word) {
  device_->store_word(0, state_word);
  device_->flush(0, sizeof state_word);
  return device_->fence();
}

Status LevelFile::clear() {
  forget();
  // A file that was just made is zeros.
  if (device_->size_bytes() < sizeof(std::uint64_t)) return Status::success();
  return declare(0);
}

Status LevelFile::reserve(std::uint64_t payload_bytes) {
  return device_->resize(sealed_bytes(payload_bytes));
}

Status LevelFile::begin(std::uint64_t payload_bytes) {
  PERDURE_TRY(clear());  // fence 1
  PERDURE_TRY(reserve(payload_bytes));
  seal_.header.payload_bytes = payload_bytes;
  seal_.checksums.assign(chunks_of(payload_bytes), 0);
  chunks_to_come_ = seal_.checksums.size();
  return Status::success();
}

void LevelFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  PERDURE_ASSERT(!whole_ && offset % sealed_chunk_bytes == 0 && offset <= payload_bytes() &&
                 bytes.size() <= payload_bytes() - offset);
  PERDURE_ASSERT(bytes.size() % sealed_chunk_bytes == 0 ||
                 offset + bytes.size() == payload_bytes());
  if (chunks_to_come_ == seal_.checksums.size()) writer_ = std::this_thread::get_id();
  if (writer_ != std::this_thread::get_id()) writer_ = {};
  for (std::size_t chunk = offset / sealed_chunk_bytes; !bytes.empty(); ++chunk) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), sealed_chunk_bytes));
    PERDURE_ASSERT(chunks_to_come_-- > 0);
    seal_.checksums[chunk] = store(sealed_payload_offset + chunk * sealed_chunk_bytes, part);
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

Status LevelFile::complete(const SealedHeader& header) {
  PERDURE_ASSERT(!whole_ && chunks_to_come_ == 0 && header.payload_bytes == payload_bytes());
  seal_.header = header;
  const SealedHeaderFormat format = seal_.format();
  device_->copy(sealed_header_offset, &format, sizeof format);
  device_->copy(sealed_table_offset(payload_bytes()), seal_.checksums.data(),
                seal_.checksums.size() * sizeof seal_.checksums[0]);
  if (writer_ != std::this_thread::get_id()) device_->flush(sealed_payload_offset, payload_bytes());
  PERDURE_TRY(device_->fence());                                       // fence 2
  if (const Status status = declare(format.checksum); !status.ok()) {  // fence 3
    (void)clear();                                                     // the error is the first one
    return status;
  }
  whole_ = true;
  return Status::success();
}

std::span<const std::byte> LevelFile::payload() const {
  if (!whole_) return {};
  return {device_->base() + sealed_payload_offset, payload_bytes()};
}

// In pieces, for which memory is read once. `copy`: what they are copied to before their checksum
// is taken of it; null: they are not copied.
Status LevelFile::verify_chunk(std::size_t chunk, std::byte* copy) const {
  const std::uint64_t begin = chunk * sealed_chunk_bytes;
  const std::uint64_t count = std::min(sealed_chunk_bytes, payload_bytes() - begin);
  const std::byte* const bytes = device_->base() + sealed_payload_offset + begin;
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
  if (wrong == nullptr && checksum == seal_.checksums[chunk]) return Status::success();
  if (wrong == nullptr) wrong = " do not have their checksum";
  return Status(Code::damaged, path_, ": bytes ", begin, " to ", begin + count - 1, " of version ",
                seal_.header.id.version, wrong);
}

Status LevelFile::verify(std::uint64_t offset, std::uint64_t count) const {
  PERDURE_ASSERT(whole_ && offset <= payload_bytes() && count <= payload_bytes() - offset);
  for (std::size_t chunk = offset / sealed_chunk_bytes; chunk < chunks_of(offset + count);
       ++chunk) {
    if (count != 0) PERDURE_TRY(verify_chunk(chunk, nullptr));
  }
  return Status::success();
}

Status LevelFile::read_chunk(std::uint64_t offset, std::span<std::byte> out) const {
  PERDURE_ASSERT(whole_ && offset % sealed_chunk_bytes == 0 && offset < payload_bytes() &&
                 out.size() == std::min(sealed_chunk_bytes, payload_bytes() - offset));
  return verify_chunk(offset / sealed_chunk_bytes, out.data());
}

Status clear_newer(const Directory& directory, Trust trust, const JobId& job, std::uint64_t held,
                   const std::function<bool(std::uint32_t rank)>& of) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    const auto parsed = parse_level_file_name(name);
    if (!parsed || !of(parsed->rank)) continue;
    const auto seen = LevelFile::open(directory, *parsed, trust, true);
    if (!seen.ok() || !seen.value().whole()) continue;
    const SealedHeader& header = seen.value().header();
    if (header.job.job_id != job || header.id.version <= held) continue;
    PERDURE_TRY_ASSIGN(auto file, LevelFile::open_or_make(directory, *parsed, trust));
    PERDURE_TRY(file.clear());
  }
  return Status::success();
}

}  // namespace perdure
