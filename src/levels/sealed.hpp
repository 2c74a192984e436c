// SPDX-License-Identifier: BSD-3-Clause
//
// Seal: the header of what is kept of a version, and a checksum of each chunk of its payload.
// sealed_format.hpp has the layout.
//
// All that is kept outside of a pool is sealed, and has a kind:
//
//   image  a rank's version itself (pool/image.hpp)
//   guard  what a rank keeps of other ranks' images: redundancy (redundancy.hpp)
//   manifest  of all ranks: which of a drained version's files has which rank (manifest.hpp)
//   node   of a drained version: which images are in a node's file, and where (node_file.hpp)
//   lease  of a level: who uses it (lease.hpp)
//   origin  of a level: what a lineage was made from (lineage.hpp)
//
// Invariants
//   levels.V1  What is taken from a sealed file is what was sealed, whole. A writer seals last: a
//       level file's state word (level_file.cpp), the name of a drained one (manifest.hpp). A
//       reader trusts nothing: a header that is wrong makes a file without contents, and whoever
//       reads the payload compares it with its checksums. So it is with ranks, offsets, lengths and
//       checksums in a payload, before they are used: a manifest must name each rank once, and node
//       files of the length and with the checksum that it says.
//
// Threads: pure. Failure: see read_seal().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "levels/origin.hpp"
#include "levels/sealed_format.hpp"

namespace perdure {

enum class SealedKind : std::uint32_t {
  image = 1,
  guard = 2,
  manifest = 3,
  node = 4,
  lease = 5,
  origin = 6
};

struct SealedHeader {
  SealedKind kind = SealedKind::image;
  JobRecord job;           // without a place
  std::uint32_t rank = 0;  // 0 of what is of all ranks
  VersionId id;            // none of what is of no version
  std::uint64_t payload_bytes = 0;
};

struct Seal {
  SealedHeader header;
  std::vector<std::uint64_t> checksums;  // of each chunk

  // CRC-64 of the table of the chunks' checksums: tells two payloads of the same length apart.
  std::uint64_t table_checksum() const;
  // As it is stored, with its checksum, which is the state word.
  SealedHeaderFormat format() const;
  // What is before the payload, and after it.
  std::string head() const;
  std::string tail() const;
};

// Reads bytes [offset, offset + out.size()) of what may be sealed. Code::damaged: they can't be
// read.
using ReadBytes = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

// Of what has `size_bytes`, and should be of this kind and rank. Absent: nothing whole is there.
// Code::newer_format if a newer Perdure wrote it.
Result<std::optional<Seal>> read_seal(const std::string& path, std::uint64_t size_bytes,
                                      SealedKind kind, std::uint32_t rank, const ReadBytes& read);

// A small file as a whole, with the header of its payload.
std::string sealed(SealedHeader header, std::string_view payload);
struct Unsealed {
  SealedHeader header;
  std::string_view payload;  // of the bytes
};
// Code::damaged, newer_format.
Result<Unsealed> unseal(const std::string& path, std::string_view bytes, SealedKind kind,
                        std::uint32_t rank);

}  // namespace perdure
