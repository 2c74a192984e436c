// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of cache_job write, where, and how far they came: pure functions of the seed, and
// the log, a file that outlives them. No MPI: the verifier reads the same header.
//
//   | fine stripes | coarse stripes | grown: fine stripes, from the growth on |
//
// Stripe i of a region belongs to rank i mod ranks, so no two ranks write the same byte, and they
// share grains and blocks everywhere. No length is a multiple of anything.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cache_job {

constexpr std::uint64_t small_bytes_max = 4096;  // whole or absent (cache_part.hpp, cache.P3)
constexpr std::uint64_t large_bytes_max = std::uint64_t{300} << 10;
constexpr std::uint64_t fine_bytes = 4999;
constexpr std::uint64_t coarse_bytes = 311'111;
constexpr std::uint64_t fine_stripes = 24;  // of each rank
constexpr std::uint64_t coarse_stripes = 2;

struct Shape {
  std::uint64_t seed = 1;
  std::uint64_t ranks = 2;
  std::uint64_t nodes = 1;
  std::uint64_t block_bytes = 65536;
  std::uint64_t writes = 100;  // of a rank, in each of four rounds
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

inline std::uint64_t coarse_begin(const Shape& shape) {
  return shape.ranks * fine_stripes * fine_bytes;
}
inline std::uint64_t grown_begin(const Shape& shape) {
  return coarse_begin(shape) + shape.ranks * coarse_stripes * coarse_bytes;
}
// The file ends amid the coarse stripes, so that writes make it grow too.
inline std::uint64_t bytes_at_first(const Shape& shape) {
  return coarse_begin(shape) + shape.ranks * coarse_stripes * coarse_bytes * 3 / 4 + 13;
}
inline std::uint64_t bytes_at_last(const Shape& shape) {
  return grown_begin(shape) + shape.ranks * fine_stripes * fine_bytes + 777;
}

// The byte at a position, by the word it is in: cheap, so that ranks spend their time writing.
inline unsigned char byte_of(std::uint64_t pattern, std::uint64_t position) {
  const std::uint64_t word = pattern ^ ((position >> 3) * 0xD6E8FEB86659FD93U);
  return static_cast<unsigned char>(word >> (8 * (position & 7)));
}
inline std::uint64_t first_pattern(const Shape& shape) {
  return mix(shape.seed, ~std::uint64_t{0});
}

struct Write {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t pattern;
};

// The `number`-th write of a rank.
inline Write write_of(const Shape& shape, std::uint64_t rank, std::uint64_t number) {
  const std::uint64_t drawn = mix(mix(shape.seed, rank), number);
  std::uint64_t begin = 0;
  const bool coarse = drawn % 16 == 0;
  if (coarse) begin = coarse_begin(shape);
  if (!coarse && number >= 2 * shape.writes && (drawn >> 8) % 2 == 0) begin = grown_begin(shape);
  const std::uint64_t stripe_bytes = coarse ? coarse_bytes : fine_bytes;
  const std::uint64_t stripe = (drawn >> 16) % (coarse ? coarse_stripes : fine_stripes);
  begin += (stripe * shape.ranks + rank) * stripe_bytes;
  Write write{0, 1 + mix(drawn, 1) % (coarse ? large_bytes_max : small_bytes_max), drawn};
  if (!coarse && (drawn >> 9) % 8 == 0) write.bytes = 8;
  write.offset = begin + mix(drawn, 2) % (stripe_bytes - write.bytes - 6);
  // An aligned word has a way of its own.
  if (write.bytes == 8 && (drawn >> 12) % 2 == 0) write.offset = (write.offset + 7) / 8 * 8;
  return write;
}

// What of a write goes to one node in one piece: blocks are dealt out cyclically.
struct Piece {
  std::uint64_t node;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t pattern;
  bool certain;  // it was acknowledged
};

inline std::vector<Piece> pieces_of(const Shape& shape, const Write& write) {
  if (shape.nodes == 1) return {{0, write.offset, write.bytes, write.pattern, false}};
  std::vector<Piece> pieces;
  const std::uint64_t end = write.offset + write.bytes;
  for (std::uint64_t at = write.offset; at < end;) {
    const std::uint64_t block = at / shape.block_bytes;
    const std::uint64_t to = std::min(end, (block + 1) * shape.block_bytes);
    pieces.push_back({block % shape.nodes, at, to - at, write.pattern, false});
    at = to;
  }
  return pieces;
}

// What a rank does, in this order; a kill aims at one of them.
enum class Stage : std::uint64_t {
  open,
  write,
  sync,
  write_unsynced,
  grow,
  write_grown,
  sync_again,
  close,
  reopen,
  write_reopened,
  close_again,
  end,
};
constexpr std::size_t stages = 12;

// Each word is stored after what it reports has happened, except `started`, which comes before.
struct RankLog {
  std::atomic<std::uint64_t> stage;
  std::atomic<std::uint64_t> started;       // writes that were begun
  std::atomic<std::uint64_t> acknowledged;  // writes that returned
  std::atomic<std::uint64_t> synced;        // of these, those before a sync or close that returned
  std::atomic<std::uint64_t> growing;       // set_size was begun
  std::atomic<std::uint64_t> grown;         // and returned
  std::atomic<std::uint64_t> killed_ns;     // when the rank is to be killed; 0: it isn't
  std::atomic<std::uint64_t> failed_ns;     // when a call failed; 0: none did
  std::atomic<std::uint64_t> stage_ns[stages];  // when each began
  std::uint64_t reserved[12];
};
static_assert(sizeof(RankLog) == 256);

constexpr std::size_t ranks_max = 15;

struct Log {
  std::atomic<std::uint64_t> all_killed_ns;  // when all are killed; set by the first to come there
  std::uint64_t reserved[31];
  RankLog ranks[ranks_max];
};
static_assert(sizeof(Log) == 4096);

struct Findings {
  std::uint64_t lost = 0;   // bytes of acknowledged writes that are not there
  std::uint64_t wrong = 0;  // other bytes that no order of events explains
  std::uint64_t first = 0;  // where the first of either is
};

// Compares a file with what the log allows it to hold. `async`: a write to another node counts as
// acknowledged when it was synced.
Findings verify(const Shape& shape, const Log& log, bool async,
                const std::vector<unsigned char>& file);

}  // namespace cache_job
