// SPDX-License-Identifier: BSD-3-Clause
//
// Which blocks of a part get room, and what passes through (P1, P12, P16).
#include <algorithm>
#include <string>

#include "cache/cache_part.hpp"

namespace perdure {

Status CachePart::no_room(const Status& seen) const {
  return may_pass() ? seen : versions_.no_room(seen);
}

// Whoever is first tells the user.
void CachePart::note_passing() {
  if (!table_.note_passing() || !tell_) return;
  tell_(std::string(header().path) + ": node " + std::to_string(header().node) +
        " has no room for more of it in its cache, which has " +
        std::to_string(device_->allocated_bytes()) + " bytes (" + device_->describe().name +
        "); what does not fit passes through to the file, at the file's speed. Choose a larger "
        "device (perdure_cache_directory), or do not cache the file");
}

// False: it has no entry, and passes through for good.
Result<bool> CachePart::touch(std::uint64_t block) {
  const Result<bool> listed = table_.touch(block, may_pass());
  if (!listed.ok()) return no_room(listed.status());
  if (!listed.value()) note_passing();
  return listed;
}

// Of a block that this process fills. False: it passes through from now on. The second block is not
// to take the space without which threads can't write: from there on the journal comes first, and
// where it does not fit either, its entries get what is left, one by one.
Result<bool> CachePart::take_room(std::uint64_t block) {
  Status given = block == 0 || !may_pass() ? Status::success() : journal_.take_room();
  if (given.ok()) given = bytes_.allocate(block);
  if (given.ok()) return true;
  // Some file systems keep what they found before they were full; if it stays, nothing is wrong.
  (void)bytes_.discard(block);
  const bool passes = given.code() == Code::no_space && may_pass();
  if (passes) note_passing();
  table_.give(block, passes ? BlockState::through : BlockState::absent);
  if (passes) return false;
  return no_room(given);
}

Result<bool> CachePart::make_present(std::uint64_t block) {
  while (true) {
    PERDURE_TRY_ASSIGN(const bool listed, settle(block));
    const std::optional<bool> here = listed ? table_.look(block) : false;
    if (here) return *here;
  }
}

// P1. Whoever finds the block absent fills it, the others wait.
Result<bool> CachePart::settle(std::uint64_t block) {
  if (table_.is_present(block)) return true;
  PERDURE_TRY_ASSIGN(const bool listed, touch(block));
  if (!listed) return false;
  PERDURE_TRY_ASSIGN(const bool taken, table_.take_absent(block));
  if (taken) PERDURE_TRY(fill_taken(block));
  return true;
}

Status CachePart::fill_taken(std::uint64_t block) {
  PERDURE_TRY_ASSIGN(const bool room, take_room(block));
  if (!room) return Status::success();
  const Status filled = fill_claimed(block);
  table_.give(block, filled.ok() ? BlockState::present : BlockState::absent);
  return filled;
}

// The file is larger before the part says so: nobody reads there sooner.
Status CachePart::write_through(std::uint64_t block, std::uint64_t within, const std::byte* from,
                                std::uint64_t bytes, Acknowledge when) {
  const std::uint64_t at = bytes_.file_offset(block) + within;
  PERDURE_TRY(through_.write(at, from, bytes, when == Acknowledge::durable));
  bytes_.grow_size(at + bytes);
  return Status::success();
}

// Blocks with an entry that says so, and those without one.
std::uint64_t CachePart::through_bytes() const {
  if (!table_.is_passing()) return 0;
  const std::uint64_t size = bytes_.size_bytes();
  std::uint64_t bytes = 0;
  const auto add = [&](std::uint64_t block) {
    const std::uint64_t begin = bytes_.file_offset(block);
    if (begin < size) bytes += std::min(layout().block_bytes, size - begin);
  };
  const std::uint64_t entries = table_.listed_max();
  const std::uint64_t blocks = std::min(entries, bytes_.blocks_in_use());
  for (std::uint64_t block = table_.next(0); block < blocks; block = table_.next(block + 1)) {
    if (table_.kind_alone(block) == BlockState::through) add(block);
  }
  const std::uint64_t all = part_blocks_for(layout(), header().node, size);
  if (all > entries) {
    add(all - 1);
    bytes += (all - 1 - entries) * layout().block_bytes;
  }
  return bytes;
}

}  // namespace perdure
