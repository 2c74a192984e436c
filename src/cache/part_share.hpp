// SPDX-License-Identifier: BSD-3-Clause
//
// Part share: what one rank gives to a version's image of a cached file, and how the file is made
// of the shares of all ranks.
//
// The shares of a version hold every byte of the file, whatever the cached file itself holds. So
// nothing has to be known, at a restart, of what was written back before or after the version, and
// to make the file of them may be cut short and begun anew.
//
// Threads: any. Failure: what is read of a share is not trusted; Code::damaged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/cache_part.hpp"
#include "parts/part_share_format.hpp"

namespace perdure {

class PartShare {
 public:
  // Of a part of a file that had `file_bytes` bytes at the version; `share` of its node's `shares`.
  static PartShare of(const CachePart& part, std::uint64_t file_bytes, std::uint32_t share,
                      std::uint32_t shares);
  static Result<PartShare> parse(std::span<const std::byte> head);

  const PartShareFormat& format() const { return format_; }
  std::vector<std::byte> head() const;
  std::uint64_t bytes() const;
  // Bytes of the share from `offset` on, as they were at `version` (CachePart::read_at).
  Status read(CachePart& part, std::uint64_t version, std::uint64_t offset,
              std::span<std::byte> out) const;
  // Puts all bytes of the share where they belong in the file.
  Status write(const BackingFile& file, std::span<const std::byte> bytes) const;

 private:
  // A run of the share's bytes within one block.
  struct Run {
    std::uint64_t block = 0;  // of the part
    std::uint64_t within = 0;
    std::uint64_t file_offset = 0;
    std::uint64_t bytes = 0;
  };
  Layout layout() const;
  Run run_at(std::uint64_t offset) const;

  PartShareFormat format_{};
};

}  // namespace perdure
