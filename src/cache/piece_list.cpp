// SPDX-License-Identifier: BSD-3-Clause
#include "cache/piece_list.hpp"

#include <cstring>

namespace perdure {
namespace {

constexpr std::uint64_t file_bytes_max = std::numeric_limits<std::int64_t>::max();

// Most pieces are a number or two, for which a call of memcpy would cost more than the copy.
inline void copy_piece(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    case 16:
      std::memcpy(to, from, 16);
      break;
    default:
      std::memcpy(to, from, bytes);
  }
}

// Of a run from a stranger. The sums can't be too large for their type, as each is checked first.
Status check_run(const PiecesFormat& run) {
  const std::uint64_t count = run.count;
  if (run.bytes == 0 || count == 0 || run.stride < run.bytes) {
    return Status(Code::invalid_argument, count, " pieces of ", run.bytes, " bytes, ", run.stride,
                  " from each to the next, are no pieces of a file");
  }
  const bool fits = run.offset <= file_bytes_max && run.bytes <= file_bytes_max - run.offset &&
                    run.stride <= file_bytes_max;
  const std::uint64_t room = fits ? file_bytes_max - run.offset - run.bytes : 0;
  if (fits && (count - 1) <= room / run.stride) return Status::success();
  return Status(Code::invalid_argument, count, " pieces of ", run.bytes, " bytes from byte ",
                run.offset, " on, ", run.stride,
                " from each to the next, end beyond what any file can have");
}

}  // namespace

void PieceList::clear() {
  constexpr std::size_t kept_max = 65536;
  if (memory_.capacity() > kept_max || runs_.capacity() > kept_max) {
    runs_ = {};
    memory_ = {};
  }
  runs_.clear();
  memory_.clear();
  bytes_ = 0;
  room_ = payload_bytes_max;
  next_ = none;
}

void PieceList::add_run(std::uint64_t offset, std::uint64_t bytes) {
  runs_.push_back({offset, bytes, static_cast<std::uint32_t>(bytes), 1});
  room_ -= sizeof(PiecesFormat);
}

// Where the piece that follows the last run begins.
void PieceList::expect_next() {
  const PiecesFormat& last = runs_.back();
  next_ = last.count > 1 ? last.offset + last.count * last.stride : none;
}

// The last run, if it is one piece that goes on with the run before, becomes a piece of that.
void PieceList::join_last() {
  if (runs_.size() < 2 || runs_.back().count != 1) return;
  const PiecesFormat last = runs_.back();
  PiecesFormat& before = runs_[runs_.size() - 2];
  if (before.bytes != last.bytes || last.offset < before.offset + before.bytes) return;
  if (before.count == 1) {
    before.stride = last.offset - before.offset;
  } else if (last.offset != before.offset + before.count * before.stride) {
    return;
  }
  ++before.count;
  runs_.pop_back();
  room_ += sizeof(PiecesFormat);
}

void PieceList::add_regular(const PiecesFormat& run, std::byte* memory) {
  add_memory(memory, std::uint64_t{run.bytes} * run.count);
  const bool goes_on =
      run.offset == next_ && runs_.back().bytes == run.bytes && runs_.back().stride == run.stride;
  if (goes_on) {
    runs_.back().count += run.count;
  } else {
    join_last();
    runs_.push_back(run);
    room_ -= sizeof(PiecesFormat);
  }
  expect_next();
}

void PieceList::add_otherwise(std::uint64_t offset, std::uint64_t bytes) {
  if (!runs_.empty()) {
    PiecesFormat& last = runs_.back();
    const bool follows = last.count == 1 && offset == last.offset + last.bytes;
    if (follows && last.bytes + bytes <= piece_bytes_max) {
      last.bytes += static_cast<std::uint32_t>(bytes);
      last.stride = last.bytes;
      return;
    }
  }
  join_last();
  if (!runs_.empty()) {
    PiecesFormat& last = runs_.back();
    const bool goes_on =
        last.count > 1 && offset == last.offset + last.count * last.stride && last.bytes == bytes;
    if (goes_on) {
      ++last.count;
      expect_next();
      return;
    }
    // Not if the piece itself may still grow: memory may be in smaller pieces than the file.
    const bool second = last.count == 1 && last.bytes == bytes && offset > last.offset + bytes;
    if (second) {
      add_run(offset, bytes);
      join_last();
      expect_next();
      return;
    }
  }
  add_run(offset, bytes);
  next_ = none;
}

void gather(std::span<const MemoryPiece> memory, std::byte* to) {
  for (const MemoryPiece& piece : memory) {
    copy_piece(to, piece.at, piece.bytes);
    to += piece.bytes;
  }
}

void scatter(const std::byte* from, std::span<const MemoryPiece> memory) {
  for (const MemoryPiece& piece : memory) {
    copy_piece(piece.at, from, piece.bytes);
    from += piece.bytes;
  }
}

Status check_pieces(std::span<const PiecesFormat> runs, std::uint64_t bytes) {
  std::uint64_t sum = 0;
  for (const PiecesFormat& run : runs) {
    PERDURE_TRY(check_run(run));
    const std::uint64_t run_bytes = std::uint64_t{run.bytes} * run.count;
    if (run_bytes > bytes - sum) {
      return Status(Code::invalid_argument, "the pieces of a request have more than its ", bytes,
                    " bytes");
    }
    sum += run_bytes;
  }
  if (sum == bytes) return Status::success();
  return Status(Code::invalid_argument, "the pieces of a request have ", sum, " of its ", bytes,
                " bytes");
}

}  // namespace perdure
