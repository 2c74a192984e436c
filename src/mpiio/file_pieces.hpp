// SPDX-License-Identifier: BSD-3-Clause
//
// File pieces: one access to bytes of a cached file that are not all together. What a node keeps of
// them travels in one message, or, where it is long, in few, and all nodes are asked before one is
// waited for.
//
// Each piece is a write of its own (cache.P20 of part_pieces.cpp). Of a file that does not stand
// aside.
//
// Threads: one. Failure: add() and finish() say why; what was moved before stays moved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/part_access.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/cached_file.hpp"

namespace perdure {

struct CachedFile::NodePieces {
  PieceList list;  // that are not begun
  Outcome outcome;
  PartAccess* part = nullptr;  // once some are
};

class CachedFile::Pieces {
 public:
  // `when` is of writes.
  Pieces(CachedFile& file, Direction direction, Acknowledge when);
  // Nothing uses the program's memory afterwards.
  ~Pieces();
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  // `bytes` of the file from `offset` on, to or from `memory`. Memory of a read is filled when
  // finish() returns; that of a write does not change before.
  Status add(std::uint64_t offset, std::byte* memory, std::uint64_t bytes) {
    const bool is_here = offset >= here_begin_ && offset < here_end_ && bytes <= small_bytes &&
                         bytes <= here_end_ - offset;
    if (is_here && here_->list.has_room_for(bytes)) [[likely]] {
      here_->list.add(offset, memory, bytes);
      return Status::success();
    }
    return add_otherwise(offset, memory, bytes);
  }
  // Pieces of a run, whose memory is in one piece.
  Status add_regular(RegularRun run, std::byte* memory);
  Status finish();

 private:
  // More is faster by itself where this node keeps it: it is not copied twice.
  static constexpr std::uint64_t small_bytes = 256;

  Status add_otherwise(std::uint64_t offset, std::byte* memory, std::uint64_t bytes);
  void look_at(std::uint64_t offset);
  Status move_own(std::uint64_t offset, std::byte* memory, std::uint64_t bytes);
  Status begin(std::uint32_t node);
  Status await_all();

  CachedFile& file_;
  Direction direction_;
  Acknowledge when_;
  std::unique_ptr<std::vector<NodePieces>> nodes_;
  std::uint64_t end_ = 0;  // of the last piece in the file
  // Pieces between the two are of one node.
  NodePieces* here_ = nullptr;
  std::uint64_t here_begin_ = 0;
  std::uint64_t here_end_ = 0;
};

}  // namespace perdure
