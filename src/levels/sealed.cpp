// SPDX-License-Identifier: BSD-3-Clause
#include "levels/sealed.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "base/files.hpp"

namespace perdure {
namespace {

std::uint64_t checksum_of(std::span<const std::uint64_t> table, std::uint64_t seed) {
  return crc64(table.data(), table.size_bytes(), seed);
}

// Never 0, because that is the state word of what has no contents.
std::uint64_t header_checksum(const SealedHeaderFormat& format,
                              std::span<const std::uint64_t> table) {
  const std::uint64_t checksum =
      checksum_of(table, crc64(&format, offsetof(SealedHeaderFormat, checksum)));
  return std::max<std::uint64_t>(checksum, 1);
}

// State word, header and table, if they fit each other and the size.
Result<std::optional<Seal>> look(std::uint64_t size, SealedHeaderFormat& format,
                                 const ReadBytes& read) {
  if (size < sealed_payload_offset) return std::optional<Seal>();
  std::uint64_t state_word = 0;
  PERDURE_TRY(read(0, std::as_writable_bytes(std::span(&state_word, 1))));
  PERDURE_TRY(read(sealed_header_offset, std::as_writable_bytes(std::span(&format, 1))));
  const std::uint64_t payload_bytes = format.payload_bytes;
  if (state_word == 0 || state_word != format.checksum || format.magic != sealed_magic ||
      payload_bytes > size || sealed_bytes(payload_bytes) > size) {
    return std::optional<Seal>();
  }
  Seal seal;
  seal.checksums.resize(chunks_of(payload_bytes));
  PERDURE_TRY(
      read(sealed_table_offset(payload_bytes), std::as_writable_bytes(std::span(seal.checksums))));
  if (header_checksum(format, seal.checksums) != state_word) return std::optional<Seal>();
  return std::optional<Seal>(std::move(seal));
}

// levels.V1: what a header with the right checksum says.
bool believable(const SealedHeaderFormat& format, SealedKind kind, std::uint32_t rank) {
  return format.format_version == sealed_version &&
         format.kind == static_cast<std::uint32_t>(kind) && format.rank == rank &&
         format.rank < format.ranks && format.ranks <= ranks_max &&
         format.job_name[job_name_bytes - 1] == '\0';
}

JobRecord job_of(const SealedHeaderFormat& format) {
  const JobId id{{format.job_id[0], format.job_id[1]}};
  const JobId lineage{{format.lineage[0], format.lineage[1]}};
  return {id, format.job_name, format.ranks, format.job_created_ns, {}, lineage};
}

std::vector<std::uint64_t> checksums_of(std::string_view payload) {
  std::vector<std::uint64_t> checksums;
  for (std::size_t at = 0; at < payload.size(); at += sealed_chunk_bytes) {
    const auto chunk = payload.substr(at, sealed_chunk_bytes);
    checksums.push_back(crc64(chunk.data(), chunk.size()));
  }
  return checksums;
}

}  // namespace

std::uint64_t Seal::table_checksum() const {
  return checksum_of(checksums, 0);
}

SealedHeaderFormat Seal::format() const {
  SealedHeaderFormat format{};
  format.magic = sealed_magic;
  format.format_version = sealed_version;
  format.kind = static_cast<std::uint32_t>(header.kind);
  format.rank = header.rank;
  const JobRecord& job = header.job;
  std::copy_n(job.job_id.words, 2, format.job_id);
  std::copy_n(job.lineage.words, 2, format.lineage);
  PERDURE_ASSERT(job.job_name.size() < job_name_bytes);
  std::memcpy(format.job_name, job.job_name.data(), job.job_name.size());
  format.job_created_ns = job.created_ns;
  format.ranks = job.ranks;
  format.version = header.id.version;
  format.incarnation = header.id.incarnation;
  format.payload_bytes = header.payload_bytes;
  format.checksum = header_checksum(format, checksums);
  return format;
}

Result<std::optional<Seal>> read_seal(const std::string& path, std::uint64_t size_bytes,
                                      SealedKind kind, std::uint32_t rank, const ReadBytes& read) {
  SealedHeaderFormat format{};
  auto seen = look(size_bytes, format, read);
  if (seen.status().code() == Code::damaged) return std::optional<Seal>();
  if (!seen.ok() || !seen.value()) return seen;
  if (format.format_version > sealed_version) {
    return newer_format(path, format.format_version, sealed_version);
  }
  if (!believable(format, kind, rank)) return std::optional<Seal>();
  seen.value()->header = {kind, job_of(format), rank, id_of(format), format.payload_bytes};
  return seen;
}

std::string Seal::head() const {
  const SealedHeaderFormat stored = format();
  std::string bytes(sealed_payload_offset, '\0');
  std::memcpy(bytes.data(), &stored.checksum, sizeof stored.checksum);
  std::memcpy(bytes.data() + sealed_header_offset, &stored, sizeof stored);
  return bytes;
}

std::string Seal::tail() const {
  const std::uint64_t end = sealed_payload_offset + header.payload_bytes;
  std::string bytes(sealed_table_offset(header.payload_bytes) - end, '\0');
  const auto table = std::as_bytes(std::span(checksums));
  return bytes.append(reinterpret_cast<const char*>(table.data()), table.size());
}

std::string sealed(SealedHeader header, std::string_view payload) {
  header.payload_bytes = payload.size();
  const Seal seal{std::move(header), checksums_of(payload)};
  return seal.head().append(payload) + seal.tail();
}

Result<Unsealed> unseal(const std::string& path, std::string_view bytes, SealedKind kind,
                        std::uint32_t rank) {
  const auto read = [bytes](std::uint64_t offset, std::span<std::byte> out) {
    std::ranges::copy(std::as_bytes(std::span(bytes).subspan(offset, out.size())), out.begin());
    return Status::success();
  };
  PERDURE_TRY_ASSIGN(auto seal, read_seal(path, bytes.size(), kind, rank, read));
  if (seal && sealed_bytes(seal->header.payload_bytes) == bytes.size()) {
    const auto payload = bytes.substr(sealed_payload_offset, seal->header.payload_bytes);
    if (checksums_of(payload) == seal->checksums) return Unsealed{std::move(seal->header), payload};
  }
  return Status(Code::damaged, path, " is not what its name says, or is damaged");
}

}  // namespace perdure
