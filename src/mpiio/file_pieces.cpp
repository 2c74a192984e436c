// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_pieces.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace perdure {

CachedFile::Pieces::Pieces(CachedFile& file, Direction direction, Acknowledge when)
    : file_(file),
      direction_(direction),
      when_(when),
      nodes_(file.spare_pieces_.exchange(nullptr)) {
  if (nodes_ == nullptr) nodes_ = std::make_unique<std::vector<NodePieces>>(file.nodes());
}

CachedFile::Pieces::~Pieces() {
  (void)await_all();
  for (NodePieces& there : *nodes_) {
    there.list.clear();
    there.outcome = {};
    there.part = nullptr;
  }
  delete file_.spare_pieces_.exchange(nodes_.release());
}

// A piece is split where another node keeps the rest, as one that is contiguous is, and where it is
// too long for a message.
Status CachedFile::Pieces::add_otherwise(std::uint64_t offset, std::byte* memory,
                                         std::uint64_t bytes) {
  while (bytes != 0) {
    look_at(offset);
    std::uint64_t run = run_on_node(file_.layout_, offset, bytes);
    const auto node = static_cast<std::uint32_t>(here_ - nodes_->data());
    if (run > small_bytes && node == file_.others_.own()) {
      PERDURE_TRY(move_own(offset, memory, run));
    } else {
      run = std::min(run, PieceList::piece_bytes_max);
      if (!here_->list.has_room_for(run)) PERDURE_TRY(begin(node));
      here_->list.add(offset, memory, run);
    }
    offset += run;
    memory += run;
    bytes -= run;
  }
  return Status::success();
}

// As many at once as are of one node and fit into the message.
Status CachedFile::Pieces::add_regular(RegularRun run, std::byte* memory) {
  const auto bytes = static_cast<std::uint64_t>(run.bytes);
  const auto stride = static_cast<std::uint64_t>(run.stride);
  auto offset = static_cast<std::uint64_t>(run.offset);
  for (auto left = static_cast<std::uint64_t>(run.count); left != 0;) {
    look_at(offset);
    const std::uint64_t room = here_end_ - offset;
    std::uint64_t count = bytes > room ? 0 : (room - bytes) / stride + 1;
    count = std::min({count, left, here_->list.room_for_pieces_of(bytes)});
    if (bytes > small_bytes || count < 2) {
      count = 1;
      PERDURE_TRY(add(offset, memory, bytes));
    } else {
      here_->list.add_regular(
          {offset, stride, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(count)},
          memory);
    }
    offset += count * stride;
    memory += count * bytes;
    left -= count;
  }
  return Status::success();
}

Status CachedFile::Pieces::move_own(std::uint64_t offset, std::byte* memory, std::uint64_t bytes) {
  end_ = std::max(end_, offset + bytes);
  return direction_ == Direction::read ? file_.own_->read(offset, memory, bytes)
                                       : file_.own_->write(offset, memory, bytes, when_);
}

// On one node, anywhere; but add() leaves what is too long to add_otherwise().
void CachedFile::Pieces::look_at(std::uint64_t offset) {
  const Layout& layout = file_.layout_;
  here_ = &(*nodes_)[place_of(layout, offset).node];
  const std::uint64_t bytes = layout.nodes == 1 ? PieceList::piece_bytes_max : layout.block_bytes;
  here_begin_ = offset & ~(bytes - 1);
  here_end_ = here_begin_ + bytes;
}

Status CachedFile::Pieces::begin(std::uint32_t node) {
  NodePieces& there = (*nodes_)[node];
  if (there.list.empty()) return Status::success();
  if (there.part == nullptr) {
    PERDURE_TRY_ASSIGN(there.part, file_.at(node));
  }
  if (node != file_.others_.own()) {
    file_.tally_.remote_bytes.fetch_add(there.list.bytes(), std::memory_order_relaxed);
  }
  for (const PiecesFormat& run : there.list.runs()) {
    end_ = std::max(end_, run.offset + (run.count - 1) * run.stride + run.bytes);
  }
  const Status begun = direction_ == Direction::read
                           ? there.part->begin_read(there.list, there.outcome)
                           : there.part->begin_write(there.list, when_, there.outcome);
  there.list.clear();
  return begun;
}

Status CachedFile::Pieces::await_all() {
  Status status;
  for (NodePieces& there : *nodes_) {
    if (there.part == nullptr) continue;
    const Status done = there.part->await(there.outcome);
    if (status.ok()) status = done;
  }
  return status;
}

// The other nodes work on theirs while this process does what is its own node's.
Status CachedFile::Pieces::finish() {
  for (std::uint32_t node = 0; node < nodes_->size(); ++node) {
    if (node != file_.others_.own()) PERDURE_TRY(begin(node));
  }
  PERDURE_TRY(begin(file_.others_.own()));
  PERDURE_TRY(await_all());
  const bool grows = direction_ == Direction::write && nodes_->size() > 1 &&
                     end_ > file_.known_size_.load(std::memory_order_relaxed);
  return grows ? file_.grow_size(end_) : Status::success();
}

}  // namespace perdure
