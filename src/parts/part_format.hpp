// SPDX-License-Identifier: BSD-3-Clause
//
// Part format: the file in which a node keeps its part of a cached file. Little-endian;
// docs/format.md is checked against this header.
//
//   header | state | journal slots | block table | blocks
//
// The header is written once. The rest changes while the file is open, by every process of the
// node (cache_part.hpp says in which order).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace perdure {

static_assert(std::endian::native == std::endian::little, "parts are little-endian");

constexpr std::uint64_t part_magic = 0x0054524150445250U;  // "PRDPART\0"
constexpr std::uint32_t part_format_version = 7;
constexpr std::size_t part_path_bytes = 4096;
constexpr std::uint64_t part_in_use = 1;
constexpr std::uint64_t part_fresh = 2;
constexpr std::uint64_t journal_entries_max = 65536;

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
  std::uint64_t journal_entries;
  std::uint64_t table_offset;  // of the first BlockFormat
  std::uint64_t block_offset;  // of the first block's bytes
  std::uint64_t created_ns;    // since 1970
  std::uint64_t file_device;   // of the cached file, as stat(2) says
  std::uint64_t file_inode;
  char path[part_path_bytes];  // of the cached file, absolute
  std::uint64_t pool_job[2];   // of the pool with which the file is committed; 0: with none
  char pool[part_path_bytes];  // the pool's directory
  // Of that pool: the version that it was at when the part was made, that version's incarnation,
  // and the one of all that was committed afterwards. 0: not known.
  std::uint64_t pool_version;
  std::uint64_t pool_incarnation;
  std::uint64_t next_incarnation;
  std::uint64_t checksum;  // CRC-64 of all bytes before it
};
static_assert(sizeof(PartHeaderFormat) == 8384);
static_assert(offsetof(PartHeaderFormat, instance) == 24);
static_assert(offsetof(PartHeaderFormat, block_bytes) == 56);
static_assert(offsetof(PartHeaderFormat, path) == 144);
static_assert(offsetof(PartHeaderFormat, pool_job) == 4240);
static_assert(offsetof(PartHeaderFormat, checksum) == 8376);

constexpr std::size_t shared_pointers_max = 64;
constexpr std::uint32_t owners_max = 512;

// A process that uses the part (part_owners.hpp). Its number is its place in the table, from 1 on.
struct OwnerFormat {
  std::uint64_t process;  // its id, and above bit 32 the inode of its namespace of ids; 0: nobody
  std::uint64_t start;    // when it began, as proc_pid_stat(5) says
};
static_assert(sizeof(OwnerFormat) == 16);

// What one process has at a time is marked with its number, in the low bits of the word.
constexpr unsigned owner_bits = 10;
constexpr std::uint32_t owner_unknown = (1U << owner_bits) - 1;  // it is never taken for dead
constexpr std::uint32_t owner_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word) & owner_unknown;
}
static_assert(owners_max < owner_unknown);

// Of the cached file, as stat(2) says: file_stamp.hpp.
struct StampFormat {
  std::uint64_t size_bytes;
  std::uint64_t modified_ns;  // since 1970
  std::uint64_t changed_ns;
};
static_assert(sizeof(StampFormat) == 24);
// What an owner has under way in blocks, each word a block + 1, or 0 (part_users.hpp). One line of
// the processor's cache, as all of it changes at each access.
struct UserFormat {
  std::uint64_t first;      // of the thread that joined
  std::uint64_t any;        // how many accesses may be to any block
  std::uint64_t blocks[6];  // of other threads, and of what takes long
};
static_assert(sizeof(UserFormat) == 64);

// Of which bit `n % 64` of word `n / 64` is that of the owner with number n, and bit 0 of word 0
// that of processes without a number.
constexpr std::size_t changing_words = owners_max / 64 + 1;

struct PartStateFormat {
  std::uint64_t size_bytes;     // of the file, as far as this part knows; node 0 knows
  std::uint64_t visible_bytes;  // bytes from here on are zeros, whatever the cached file holds
  std::uint64_t lock;           // of requests in atomic mode: 0, or who holds it (owner_of)
  std::uint64_t evicting;       // EvictingState: whether blocks may make room for others
  std::uint64_t pointer_owners[shared_pointers_max];  // who took it (owner_of); 0: it is free
  std::uint64_t pointers[shared_pointers_max];        // shared file pointers, in bytes of the view
  // Of a file that is committed with a pool.
  std::uint64_t base_version;       // (v + 1) << 10: what changes comes after version v; low bits:
                                    // the owner that sets it
  std::uint64_t sized_versions[2];  // versions + 1, and how large the file was then; 0: none
  std::uint64_t sizes[2];
  std::uint64_t prepared;        // the version for which all was made durable last
  std::uint64_t touched_blocks;  // beyond these no block was ever asked for; and the bits below
  // Of a file that is committed with a pool: part_in_use, the file can't go back to the pool's
  // version without this part; part_fresh, nobody has written yet; 0, the cached file has all, or
  // levels do not keep the file.
  std::uint64_t in_use;
  // Of changes to the cached file (change_record.hpp).
  std::uint64_t changing[changing_words];  // whose changes may lack a record
  std::uint64_t change_begun_ns;           // since 1970: when the youngest change was begun
  std::uint64_t slowest_change_ns;         // the longest that one took
  std::uint64_t other_clock;               // 1: the file's times are not of this machine's clock
  std::uint64_t stamp_turn;  // a count of records << 10; low bits: the owner that makes one
  StampFormat stamps[2];     // the record is the one that the count's lowest bit names
  std::uint64_t durable;     // 1: something here may outlast a power failure
  OwnerFormat owners[owners_max];
  // Of blocks that make room for others (evictor.hpp).
  std::uint64_t round;           // the low 8 bits mark what was counted in it (BlockFormat)
  std::uint64_t hand;            // how many blocks were looked at
  std::uint64_t round_hand;      // the same when the round began
  std::uint64_t evicted_blocks;  // how many made room
  std::uint64_t reserved[4];
  UserFormat users[owners_max];
};
static_assert(sizeof(PartStateFormat) == 42304);
static_assert(offsetof(PartStateFormat, owners) == 1280);
static_assert(offsetof(PartStateFormat, users) % sizeof(UserFormat) == 0);

enum class EvictingState : std::uint64_t {
  never = 0,     // nobody has begun with it, and accesses need no fence
  starting = 1,  // accesses have one from now on
  begun = 2,     // no access is under way any more that began without
};

// The highest bits of touched_blocks.
constexpr std::uint64_t table_full_bit = std::uint64_t{1} << 63;  // there will be no more entries
constexpr std::uint64_t passing_bit = std::uint64_t{1} << 62;     // some block passes through
constexpr std::uint64_t touched_mask = passing_bit - 1;

constexpr std::size_t journal_bytes = 4096;

// An intended small write.
struct JournalFormat {
  std::uint64_t owner;     // the number of the process that uses the slot; 0: free
  std::uint64_t length;    // 0: nothing is intended
  std::uint64_t offset;    // in the cached file
  std::uint64_t checksum;  // of offset, length and bytes; 0: holds within one boot only
  // A large write that is under way, of which nothing is kept here; 0 bytes: none.
  std::uint64_t writing_offset;
  std::uint64_t writing_bytes;
  std::uint64_t reserved[2];
  unsigned char bytes[journal_bytes];
};
static_assert(sizeof(JournalFormat) == 4160);

constexpr unsigned grains_per_block = 128;

// A block is divided into 128 grains; each bitmap has one bit for each.
struct BlockFormat {
  std::uint32_t state;  // BlockState
  // Of a file that is committed with a pool: the undo file has room for the block's slots, as
  // below, or 0. Of any other: how often the block was used lately; the highest 8 bits: in which
  // round.
  std::uint32_t undo_or_uses;
  std::uint64_t dirty[2];    // differs from the cached file
  std::uint64_t leaving[2];  // was handed to the cached file, which may not have it durably
  std::uint64_t kept[2];     // its bytes are durable here, and may be nowhere else
  std::uint64_t claim;       // a count of claims << 10; low bits: the owner that writes it back
};
static_assert(sizeof(BlockFormat) == 64);
constexpr std::uint32_t undo_room_said = 1;     // and may not be after a power failure
constexpr std::uint32_t undo_room_durable = 2;  // 1 at least is durable
constexpr std::uint64_t table_step = 64;        // entries that are given their space at once

// The undo file of a part whose file is committed with a pool: for each grain of the part what it
// held at a version. Slots first, then, at the next multiple of the block, the grains' bytes.
struct UndoFormat {
  std::uint64_t turn;      // (v + 1) << 10: kept at version v; low bits: the owner that keeps it
  std::uint64_t version;   // v
  std::uint64_t checksum;  // of version and bytes
  std::uint64_t reserved[5];
};
static_assert(sizeof(UndoFormat) == 64);

// A word that several processes use at once.
inline std::atomic_ref<std::uint64_t> word(std::uint64_t& at) {
  return std::atomic_ref<std::uint64_t>(at);
}
inline std::atomic_ref<std::uint32_t> word(std::uint32_t& at) {
  return std::atomic_ref<std::uint32_t>(at);
}

enum class BlockState : std::uint32_t {
  absent = 0,   // the cached file has the bytes
  filling = 1,  // a process reads them: 1 + 4 * its number
  present = 2,  // + 4 * the number of the process that evicts it; or 2: none does
  // It has no room: it is read from the cached file and written to it. The same number: of the
  // process that gives it room, or has taken it.
  through = 3,
};

// Of a block's state word: what it is without, and who has it. A block that a process has is
// `held`: nobody begins an access to it.
constexpr BlockState kind_of(std::uint32_t state) {
  return BlockState{state & 3};
}
constexpr std::uint32_t holder_of(std::uint32_t state) {
  return state >> 2;
}
constexpr std::uint32_t held_by(BlockState kind, std::uint32_t owner) {
  return static_cast<std::uint32_t>(kind) | owner << 2;
}

}  // namespace perdure
