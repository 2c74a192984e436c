// SPDX-License-Identifier: BSD-3-Clause
//
// Piece list: which bytes of a cached file one access is about, where they are not all together.
//
// Pieces have an order, that of their bytes in memory. Neighbours are one piece, and pieces of one
// length at one distance are one run (PiecesFormat), so that a vector or a row of a matrix takes 24
// bytes, however many pieces it has.
//
// Threads: values. Failure: check_pieces() says what can't be right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "cache/protocol_format.hpp"
#include "parts/ownership.hpp"

namespace perdure {

// Bytes of the program's memory.
struct MemoryPiece {
  std::byte* at;
  std::uint64_t bytes;
};

class PieceList {
 public:
  // No piece that is added, or made of several, is longer.
  static constexpr std::uint64_t piece_bytes_max = payload_bytes_max / 4;

  // `bytes` of the file from `offset` on, which go to or come from `memory`. The path that counts.
  void add(std::uint64_t offset, std::byte* memory, std::uint64_t bytes) {
    add_memory(memory, bytes);
    if (offset == next_ && bytes == runs_.back().bytes) {
      next_ += runs_.back().stride;
      ++runs_.back().count;
      return;
    }
    add_otherwise(offset, bytes);
  }
  // The same of the pieces of a run, whose memory is in one piece.
  void add_regular(const PiecesFormat& run, std::byte* memory);
  // How many pieces of a run may be added at once.
  std::uint64_t room_for_pieces_of(std::uint64_t bytes) const {
    return room_ < sizeof(PiecesFormat) ? 0 : (room_ - sizeof(PiecesFormat)) / bytes;
  }
  // Whether a piece may be added, as a message that has it is not too long.
  bool has_room_for(std::uint64_t bytes) const { return bytes + sizeof(PiecesFormat) <= room_; }
  // Its memory is used again, unless that is much.
  void clear();

  bool empty() const { return runs_.empty(); }
  std::uint64_t bytes() const { return bytes_; }  // of all pieces
  const std::vector<PiecesFormat>& runs() const { return runs_; }
  // Their memory, in the same order.
  const std::vector<MemoryPiece>& memory() const { return memory_; }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  void add_memory(std::byte* memory, std::uint64_t bytes) {
    bytes_ += bytes;
    room_ -= bytes;
    if (!memory_.empty() && memory_.back().at + memory_.back().bytes == memory) {
      memory_.back().bytes += bytes;
    } else {
      memory_.push_back({memory, bytes});
    }
  }
  void add_otherwise(std::uint64_t offset, std::uint64_t bytes);
  void add_run(std::uint64_t offset, std::uint64_t bytes);
  void join_last();
  void expect_next();

  std::vector<PiecesFormat> runs_;
  std::vector<MemoryPiece> memory_;
  std::uint64_t bytes_ = 0;
  std::uint64_t room_ = payload_bytes_max;  // in a message, beside these
  std::uint64_t next_ = none;  // where a piece goes on with the last run; none: nowhere
};

// Copies the bytes of memory, in its order, to one place, or from there.
void gather(std::span<const MemoryPiece> memory, std::byte* to);
void scatter(const std::byte* from, std::span<const MemoryPiece> memory);

// How many of the `left` pieces of a run from `offset` on lie whole in the block of the first one;
// 0: not even that one.
inline std::uint64_t pieces_in_block(const Layout& layout, const PiecesFormat& run,
                                     std::uint64_t offset, std::uint64_t left) {
  const std::uint64_t room = layout.block_bytes - (offset & (layout.block_bytes - 1));
  if (run.bytes > room) return 0;
  return std::min(left, (room - run.bytes) / run.stride + 1);
}

// Calls visit(offset, count) -> Status for pieces of a run that lie whole in one block, as many as
// there are together; and visit(offset, 0) for one that does not.
template <typename Visit>
Status for_each_block_of(const Layout& layout, const PiecesFormat& run, const Visit& visit) {
  std::uint64_t offset = run.offset;
  for (std::uint64_t left = run.count; left != 0;) {
    const std::uint64_t here = pieces_in_block(layout, run, offset, left);
    PERDURE_TRY(visit(offset, here));
    const std::uint64_t done = here == 0 ? 1 : here;
    offset += done * run.stride;
    left -= done;
  }
  return Status::success();
}

// Runs that a stranger may have sent: whether they can be right, and have `bytes` bytes in all.
Status check_pieces(std::span<const PiecesFormat> runs, std::uint64_t bytes);

}  // namespace perdure
