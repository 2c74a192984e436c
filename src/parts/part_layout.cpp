// SPDX-License-Identifier: BSD-3-Clause
#include "parts/part_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checksum.hpp"
#include "base/clock.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t header_room = 12288;
constexpr std::uint64_t state_room = 45056;
static_assert(sizeof(PartStateFormat) <= state_room);
constexpr std::uint64_t part_bytes_max = std::uint64_t{1} << 48;  // no sum of offsets overflows
constexpr std::uint64_t block_alignment = std::uint64_t{1} << 20;

std::uint64_t align_to(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct PartOffsets {
  std::uint64_t state = header_room;
  std::uint64_t journal = header_room + state_room;
  std::uint64_t table = 0;
  std::uint64_t blocks = 0;
  std::uint64_t end = 0;
};

PartOffsets offsets_of(const Layout& layout, const PartGeometry& geometry) {
  PartOffsets at;
  at.table = align_to(at.journal + geometry.journal_entries * sizeof(JournalFormat), 4096);
  // Blocks begin at a page, large ones at a large one.
  const std::uint64_t alignment =
      std::min(block_alignment, std::max<std::uint64_t>(layout.block_bytes, 4096));
  at.blocks = align_to(at.table + geometry.blocks * sizeof(BlockFormat), alignment);
  at.end = at.blocks + geometry.blocks * layout.block_bytes;
  return at;
}

Status damaged(const Device& device, const std::string& what) {
  return Status(Code::damaged, device.describe().name, ": ", what,
                "; it is no part of a cached file, or was damaged");
}

Status check_header(const Device& device, const PartHeaderFormat& header) {
  if (header.magic != part_magic) return damaged(device, "no magic number");
  const bool whole = header.checksum == crc64(&header, offsetof(PartHeaderFormat, checksum));
  if (header.format_version > part_format_version && whole) {
    return newer_format(device.describe().name, header.format_version, part_format_version);
  }
  if (!whole) return damaged(device, "the header's checksum is wrong");
  if (header.format_version < part_format_version) {
    return Status(Code::unsupported, device.describe().name, ": format ", header.format_version,
                  " of a Perdure that was never released; recover it with that one");
  }
  const bool sane =
      std::has_single_bit(header.block_bytes) && header.block_bytes >= grains_per_block &&
      header.block_bytes <= part_bytes_max &&
      header.blocks <= part_bytes_max / header.block_bytes &&
      header.journal_entries <= journal_entries_max &&
      header.layout <= static_cast<std::uint32_t>(LayoutKind::parts) && header.nodes > 0 &&
      header.node < header.nodes && header.path[part_path_bytes - 1] == '\0' &&
      header.pool[part_path_bytes - 1] == '\0';
  if (!sane) return damaged(device, "the header's numbers can't be right");
  const Layout layout{LayoutKind{header.layout}, header.nodes, header.block_bytes,
                      header.part_blocks};
  const PartOffsets at = offsets_of(layout, {header.blocks, header.journal_entries});
  if (at.state != header.state_offset || at.journal != header.journal_offset ||
      at.table != header.table_offset || at.blocks != header.block_offset) {
    return damaged(device, "the header's offsets can't be right");
  }
  if (device.size_bytes() < at.end) {
    return damaged(device, "the file ends at byte " + std::to_string(device.size_bytes()) + " of " +
                               std::to_string(at.end) + ": truncated");
  }
  return Status::success();
}

}  // namespace

std::uint64_t part_file_bytes(const Layout& layout, const PartGeometry& geometry) {
  return offsets_of(layout, geometry).end;
}

Result<PartHeaderFormat> make_part_header(const PartIdentity& identity,
                                          const PartGeometry& geometry) {
  for (const std::string* path : {&identity.path, &identity.pool}) {
    if (path->size() < part_path_bytes) continue;
    return Status(Code::invalid_argument, "the path ", *path, " is longer than ",
                  part_path_bytes - 1, " bytes");
  }
  const PartOffsets at = offsets_of(identity.layout, geometry);
  PartHeaderFormat header{};
  header.magic = part_magic;
  header.format_version = part_format_version;
  header.node = identity.node;
  header.nodes = identity.layout.nodes;
  header.layout = static_cast<std::uint32_t>(identity.layout.kind);
  std::memcpy(header.instance, identity.instance, sizeof header.instance);
  std::memcpy(header.boot, identity.boot, sizeof header.boot);
  header.block_bytes = identity.layout.block_bytes;
  header.part_blocks = identity.layout.part_blocks;
  header.blocks = geometry.blocks;
  header.state_offset = at.state;
  header.journal_offset = at.journal;
  header.journal_entries = geometry.journal_entries;
  header.table_offset = at.table;
  header.block_offset = at.blocks;
  header.created_ns = wall_clock_ns();
  header.file_device = identity.file_device;
  header.file_inode = identity.file_inode;
  std::memcpy(header.path, identity.path.data(), identity.path.size());
  std::memcpy(header.pool_job, identity.pool_job, sizeof header.pool_job);
  std::memcpy(header.pool, identity.pool.data(), identity.pool.size());
  header.pool_version = identity.pool_version;
  header.pool_incarnation = identity.pool_incarnation;
  header.next_incarnation = identity.next_incarnation;
  header.checksum = crc64(&header, offsetof(PartHeaderFormat, checksum));
  return header;
}

Result<PartHeaderFormat> read_part_header(const Device& device) {
  if (device.size_bytes() < sizeof(PartHeaderFormat)) {
    return damaged(device, "only " + std::to_string(device.size_bytes()) + " bytes long");
  }
  PartHeaderFormat header;
  std::memcpy(&header, device.base(), sizeof header);
  PERDURE_TRY(check_header(device, header));
  return header;
}

}  // namespace perdure
