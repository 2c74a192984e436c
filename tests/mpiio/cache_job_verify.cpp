// SPDX-License-Identifier: BSD-3-Clause
//
// Replays the writes of all ranks. What reached one node from one rank came there in order: of
// those that were not acknowledged the first so-many are there, for some number, and the next one,
// if it is large, in any part.
#include <algorithm>

#include "cache_job_plan.hpp"

namespace cache_job {
namespace {

using Bytes = std::vector<unsigned char>;
using Line = std::vector<Piece>;  // from one rank to one node, in order

class Replay {
 public:
  Replay(const Shape& shape, const Bytes& file) : shape_(shape), file_(file) {
    expected_.resize(bytes_at_last(shape));
    owed_.resize(expected_.size());
    file_.resize(std::max(file_.size(), expected_.size()));
    const std::uint64_t pattern = first_pattern(shape);
    for (std::uint64_t at = 0; at < bytes_at_first(shape); ++at) {
      expected_[at] = byte_of(pattern, at);
    }
    least_ = most_ = bytes_at_first(shape);
  }

  void take_size(std::uint64_t bytes, bool certain) {
    most_ = std::max(most_, bytes);
    if (certain) least_ = std::max(least_, bytes);
  }

  // The pieces of a line that are certain come first.
  void take_line(const Line& line) {
    const auto pending =
        std::find_if(line.begin(), line.end(), [](const Piece& piece) { return !piece.certain; });
    std::for_each(line.begin(), pending, [&](const Piece& piece) {
      put(piece);
      std::fill_n(owed_.begin() + at(piece), piece.bytes, true);
    });
    for (const Piece& piece : line) take_size(piece.offset + piece.bytes, piece.certain);
    settle({pending, line.end()});
  }

  Findings findings(std::uint64_t file_bytes) const {
    Findings found;
    if (file_bytes < least_) found.lost += least_ - file_bytes;
    if (file_bytes > most_) found.wrong += file_bytes - most_;
    found.first = std::min(file_bytes, most_);
    for (std::uint64_t i = expected_.size(); i-- > 0;) {
      if (file_[i] == expected_[i]) continue;
      ++(owed_[i] ? found.lost : found.wrong);
      found.first = i;
    }
    return found;
  }

 private:
  static std::ptrdiff_t at(const Piece& piece) { return static_cast<std::ptrdiff_t>(piece.offset); }

  void put(const Piece& piece) {
    for (std::uint64_t i = 0; i < piece.bytes; ++i) {
      expected_[piece.offset + i] = byte_of(piece.pattern, piece.offset + i);
    }
  }

  bool agrees(std::uint64_t place, const Piece* partial) const {
    if (file_[place] == expected_[place]) return true;
    return partial != nullptr && place - partial->offset < partial->bytes &&
           file_[place] == byte_of(partial->pattern, place);
  }
  // Where the line was at work.
  bool fits(const Line& pending, const Piece* next) const {
    if (next != nullptr && next->bytes <= small_bytes_max) next = nullptr;
    for (const Piece& piece : pending) {
      for (std::uint64_t i = 0; i < piece.bytes; ++i) {
        if (!agrees(piece.offset + i, next)) return false;
      }
    }
    return true;
  }

  // Goes on to what the file holds, if the line can have led there.
  void settle(const Line& pending) {
    const Bytes before = expected_;
    for (std::size_t done = 0; done <= pending.size(); ++done) {
      if (done != 0) put(pending[done - 1]);
      if (!fits(pending, done < pending.size() ? &pending[done] : nullptr)) continue;
      for (const Piece& piece : pending) {
        std::copy_n(file_.begin() + at(piece), piece.bytes, expected_.begin() + at(piece));
      }
      return;
    }
    expected_ = before;
  }

  const Shape& shape_;
  Bytes file_;
  Bytes expected_;
  std::vector<bool> owed_;
  std::uint64_t least_ = 0;
  std::uint64_t most_ = 0;
};

std::vector<Line> lines_of(const Shape& shape, const RankLog& log, std::uint64_t rank, bool async) {
  std::vector<Line> lines(shape.nodes);
  for (std::uint64_t number = 0; number < log.started; ++number) {
    for (Piece piece : pieces_of(shape, write_of(shape, rank, number))) {
      const bool away = async && piece.node != rank % shape.nodes;
      piece.certain = number < (away ? log.synced : log.acknowledged);
      lines[piece.node].push_back(piece);
    }
  }
  return lines;
}

}  // namespace

Findings verify(const Shape& shape, const Log& log, bool async,
                const std::vector<unsigned char>& file) {
  Replay replay(shape, file);
  for (std::uint64_t rank = 0; rank < shape.ranks; ++rank) {
    const RankLog& own = log.ranks[rank];
    for (const Line& line : lines_of(shape, own, rank, async)) replay.take_line(line);
    if (own.growing != 0) replay.take_size(bytes_at_last(shape), own.grown != 0);
  }
  return replay.findings(file.size());
}

}  // namespace cache_job
