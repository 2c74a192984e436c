// Part format: the file in which a node keeps its part of a cached file. Little-endian;
// docs/format.md is checked against this header.
//
//   header | state | journal slots | block table | blocks
//
// The header is written once. The rest changes while the file is open, by every process of the
// node (cache_part.hpp says in which order).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace perdure {

static_assert(std::endian::native == std::endian::little, "parts are little-endian");

constexpr std::uint64_t part_magic = 0x0054524150445250U;  // "PRDPART\0"
constexpr std::uint32_t part_format_version = 1;
constexpr std::size_t part_path_bytes = 4096;

struct PartHeaderFormat {
  std::uint64_t magic;           // part_magic
  std::uint32_t format_version;  // part_format_version
  std::uint32_t node;            // whose part this is
  std::uint32_t nodes;
  std::uint32_t layout;        // LayoutKind
  std::uint64_t instance[2];   // random, the same in all parts of the file
  std::uint64_t boot[2];       // the kernel's boot id: what was not flushed survives within it
  std::uint64_t block_bytes;   // a power of two
  std::uint64_t part_blocks;   // of layout parts
  std::uint64_t blocks;        // that the part has room for
  std::uint64_t state_offset;  // PartStateFormat
  std::uint64_t journal_offset;
  std::uint64_t journal_slots;
  std::uint64_t table_offset;  // of the first BlockFormat
  std::uint64_t block_offset;  // of the first block's bytes
  std::uint64_t created_ns;    // since 1970
  std::uint64_t file_device;   // of the cached file, as stat(2) says
  std::uint64_t file_inode;
  char path[part_path_bytes];  // of the cached file, absolute
  std::uint64_t checksum;      // CRC-64 of all bytes before it
};
static_assert(sizeof(PartHeaderFormat) == 4248);
static_assert(offsetof(PartHeaderFormat, instance) == 24);
static_assert(offsetof(PartHeaderFormat, block_bytes) == 56);
static_assert(offsetof(PartHeaderFormat, path) == 144);
static_assert(offsetof(PartHeaderFormat, checksum) == 4240);

constexpr std::size_t shared_pointers_max = 64;

struct PartStateFormat {
  std::uint64_t size_bytes;     // of the file, as far as this part knows; node 0 knows
  std::uint64_t visible_bytes;  // bytes from here on are zeros, whatever the cached file holds
  std::uint64_t lock;           // of requests in atomic mode: 0, or who holds it; node 0's counts
  std::uint64_t pointers_used;  // a bit for each of the following that is in use
  std::uint64_t pointers[shared_pointers_max];  // shared file pointers, in bytes of the view
};
static_assert(sizeof(PartStateFormat) == 544);

constexpr std::size_t journal_bytes = 4096;

// An intended small write.
struct JournalFormat {
  std::uint64_t owner;     // the process that uses the slot; 0: free
  std::uint64_t length;    // 0: nothing is intended
  std::uint64_t offset;    // in the cached file
  std::uint64_t checksum;  // of offset, length and bytes; 0: holds within one boot only
  std::uint64_t reserved[4];
  unsigned char bytes[journal_bytes];
};
static_assert(sizeof(JournalFormat) == 4160);

constexpr unsigned grains_per_block = 128;

// A block is divided into 128 grains; each bitmap has one bit for each.
struct BlockFormat {
  std::uint32_t state;       // BlockState
  std::uint32_t claim;       // odd: a process writes the block back
  std::uint64_t dirty[2];    // differs from the cached file
  std::uint64_t leaving[2];  // was handed to the cached file, which may not have it durably
  std::uint64_t kept[2];     // its bytes are durable here, and may be nowhere else
  std::uint64_t reserved;
};
static_assert(sizeof(BlockFormat) == 64);

enum class BlockState : std::uint32_t {
  absent = 0,   // the cached file has the bytes
  filling = 1,  // a process reads them
  present = 2,
};

}  // namespace perdure
