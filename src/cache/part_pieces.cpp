// SPDX-License-Identifier: BSD-3-Clause
//
// Pieces of a part: what a piece by itself costs, a mark, an announcement and the grains' bits, is
// paid once for all that lie in one block.
//
//   cache.P20 Each piece is a write of its own, so a small one is whole or absent (cache.P3). Those
//       of 1, 2, 4 or 8 bytes at places that these divide are one store instruction each, which
//       can't be torn, and need no intention. Until the grains of all of them are dirty, the range
//       from the first to the last is announced, as that of a large write is (cache.P15). All other
//       pieces are written one by one.
#include <cstring>
#include <vector>

#include "cache/cache_part.hpp"
#include "cache/part_access.hpp"

namespace perdure {
namespace {

// Copies of `count` pieces, of one word each. ThreadSanitizer sees what shared_bytes.hpp shows it.
template <typename Word>
void store_words(std::byte* to, const std::byte* from, std::uint64_t stride, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, to += stride, from += sizeof(Word)) {
#ifdef __SANITIZE_THREAD__
    copy_to_shared(to, from, sizeof(Word));
#else
    Word value = 0;
    std::memcpy(&value, from, sizeof value);
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(value, std::memory_order_relaxed);
#endif
  }
}

template <typename Word>
void load_words(std::byte* to, const std::byte* from, std::uint64_t stride, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, from += stride, to += sizeof(Word)) {
    copy_from_shared(to, from, sizeof(Word));
  }
}

bool are_words(const PiecesFormat& run) {
  if (run.bytes > 8 || (run.bytes & (run.bytes - 1)) != 0) return false;
  return run.offset % run.bytes == 0 && run.stride % run.bytes == 0;
}

void store_pieces(std::byte* to, const std::byte* from, const PiecesFormat& run,
                  std::uint64_t count) {
  switch (run.bytes) {
    case 1:
      return store_words<std::uint8_t>(to, from, run.stride, count);
    case 2:
      return store_words<std::uint16_t>(to, from, run.stride, count);
    case 4:
      return store_words<std::uint32_t>(to, from, run.stride, count);
    default:
      return store_words<std::uint64_t>(to, from, run.stride, count);
  }
}

void load_pieces(std::byte* to, const std::byte* from, const PiecesFormat& run,
                 std::uint64_t count) {
  switch (run.bytes) {
    case 4:
      return load_words<std::uint32_t>(to, from, run.stride, count);
    case 8:
      return load_words<std::uint64_t>(to, from, run.stride, count);
    default:
      for (std::uint64_t i = 0; i < count; ++i, from += run.stride, to += run.bytes) {
        copy_from_shared(to, from, run.bytes);
      }
  }
}

}  // namespace

// cache.P2 (b) and (c), of pieces that are some grains apart, or close together.
void CachePart::finish_pieces(std::uint64_t block, std::uint64_t within, const PiecesFormat& run,
                              std::uint64_t count) {
  const std::uint64_t span = (count - 1) * run.stride + run.bytes;
  if (run.stride <= bytes_.grain_bytes()) return finish_write(block, within, span);
  Grains grains{};
  for (std::uint64_t i = 0; i < count; ++i) {
    grains = grains | bytes_.grains_of(within + i * run.stride, run.bytes);
  }
  bytes_.grow_size(bytes_.file_offset(block) + within + span);
  table_.mark_dirty(block, grains);
}

// cache.P20. `count` words that lie in one block; false: nothing was done, it passes through.
Result<bool> CachePart::write_words(std::uint64_t offset, const PiecesFormat& run,
                                    std::uint64_t count, const std::byte* from, Acknowledge when) {
  const std::uint64_t block = place_of(layout(), offset).block;
  const std::uint64_t within = offset & (layout().block_bytes - 1);
  const std::uint64_t span = (count - 1) * run.stride + run.bytes;
  bool is_done = false;
  const Status written = room_.with_block(block, [&](bool here) -> Status {
    if (!here) return Status::success();
    {
      const PartJournal::Announcement announced(journal_.entry_of_thread(), offset, span);
      store_pieces(bytes_.of(block) + within, from, run, count);
      finish_pieces(block, within, run, count);
    }
    if (when == Acknowledge::durable) PERDURE_TRY(keep(block, within, span));
    is_done = true;
    return Status::success();
  });
  PERDURE_TRY(written);
  for (std::uint64_t i = 0; is_done && users_.is_evicting() && i < count; ++i) {
    evictor_.count_use(block, run.bytes);
  }
  return is_done;
}

Status CachePart::write_pieces(const PiecesFormat& run, const std::byte* from, Acknowledge when) {
  if (when == Acknowledge::durable) PERDURE_TRY(changes_.expect_power_failure());
  // What a durable write flushes are all grains from the first piece to the last.
  const bool are_close = when != Acknowledge::durable || run.stride <= bytes_.grain_bytes();
  const bool together = are_words(run) && are_close && !versions_.has_log();
  return for_each_block_of(layout(), run, [&](std::uint64_t offset, std::uint64_t here) -> Status {
    if (together && here > 1) {
      PERDURE_TRY_ASSIGN(const bool done, write_words(offset, run, here, from, when));
      if (done) {
        from += here * run.bytes;
        return Status::success();
      }
    }
    for (std::uint64_t left = here == 0 ? 1 : here; left != 0; --left) {
      PERDURE_TRY(write(offset, from, run.bytes, when));
      offset += run.stride;
      from += run.bytes;
    }
    return Status::success();
  });
}

// `count` pieces that lie in one block; false: nothing was done, it is not present.
bool CachePart::try_read_pieces(std::uint64_t offset, const PiecesFormat& run, std::uint64_t count,
                                std::byte* to) {
  const std::uint64_t block = place_of(layout(), offset).block;
  if (!table_.is_present(block)) return false;
  const PartUsers::Mark mark(users_, block);
  if (!table_.is_present(block)) return false;
  load_pieces(to, bytes_.of(block) + (offset & (layout().block_bytes - 1)), run, count);
  for (std::uint64_t i = 0; users_.is_evicting() && i < count; ++i) {
    evictor_.count_use(block, run.bytes);
  }
  return true;
}

Status CachePart::read_pieces(const PiecesFormat& run, std::byte* to) {
  return for_each_block_of(layout(), run, [&](std::uint64_t offset, std::uint64_t here) -> Status {
    std::uint64_t left = here == 0 ? 1 : here;
    while (left != 0) {
      // A block that is absent may have its room after some reads, which count one by one.
      if (left > 1 && try_read_pieces(offset, run, left, to)) {
        to += left * run.bytes;
        break;
      }
      PERDURE_TRY(read(offset, to, run.bytes));
      offset += run.stride;
      to += run.bytes;
      --left;
    }
    return Status::success();
  });
}

// Memory that is not in one piece has its bytes together in between: they are few at a time.
Status OwnPart::begin_read(const PieceList& pieces, Outcome& outcome) {
  std::vector<std::byte> together;
  const bool in_one = pieces.memory().size() == 1;
  if (!in_one) together.resize(pieces.bytes());
  std::byte* to = in_one ? pieces.memory().front().at : together.data();
  for (const PiecesFormat& run : pieces.runs()) {
    outcome.status = part_.read_pieces(run, to);
    PERDURE_TRY(outcome.status);
    to += std::uint64_t{run.bytes} * run.count;
  }
  if (!in_one) scatter(together.data(), pieces.memory());
  return Status::success();
}

Status OwnPart::begin_write(const PieceList& pieces, Acknowledge when, Outcome& outcome) {
  std::vector<std::byte> together;
  const bool in_one = pieces.memory().size() == 1;
  if (!in_one) {
    together.resize(pieces.bytes());
    gather(pieces.memory(), together.data());
  }
  const std::byte* from = in_one ? pieces.memory().front().at : together.data();
  for (const PiecesFormat& run : pieces.runs()) {
    outcome.status = part_.write_pieces(run, from, when);
    PERDURE_TRY(outcome.status);
    from += std::uint64_t{run.bytes} * run.count;
  }
  return Status::success();
}

}  // namespace perdure
