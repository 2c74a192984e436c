// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_room.hpp"

#include <algorithm>
#include <cstring>

namespace perdure {

// Whoever is first tells the user.
void PartRoom::note_passing() {
  if (!table_.note_passing() || !tell_) return;
  tell_(sentence(bytes_.header().path, ": node ", bytes_.header().node,
                 " has no room for more of it in its cache, which has ",
                 bytes_.device().allocated_bytes(), " bytes (", bytes_.device().describe().name,
                 "); what does not fit passes through to the file, at the file's speed. Choose a "
                 "larger device (perdure_cache_directory), or do not cache the file"));
}

// False: it has no entry, and passes through for good.
Result<bool> PartRoom::touch(std::uint64_t block) {
  Result<bool> listed = table_.touch(block, may_pass());
  if (!listed.ok()) return no_room(listed.status());
  if (!listed.value()) note_passing();
  return listed;
}

// Once something has passed through, what is free is asked first: a file system that has room for
// less than a block zeroes all of that before it refuses.
Status PartRoom::allocate(std::uint64_t block) {
  if (table_.is_passing() && bytes_.is_device_full()) return {Code::no_space, "the device is full"};
  if (block != 0 && may_pass()) PERDURE_TRY(journal_.take_spare_room());
  return bytes_.allocate(block);
}

// Of a block that this process fills. False: it passes through from now on.
Result<bool> PartRoom::take_room(std::uint64_t block) {
  const Status given = allocate(block);
  if (given.ok()) return true;
  // Some file systems keep what they found before they were full; if it stays, nothing is wrong.
  (void)bytes_.discard(block);
  const bool passes = given.code() == Code::no_space && may_pass();
  if (passes) note_passing();
  table_.give(block, passes ? BlockState::through : BlockState::absent);
  if (passes) return false;
  return no_room(given);
}

Result<bool> PartRoom::make_present(std::uint64_t block) {
  while (true) {
    PERDURE_TRY_ASSIGN(const bool listed, settle(block));
    const std::optional<bool> here = look(block, listed);
    if (here) return *here;
  }
}

Result<bool> PartRoom::is_absent(std::uint64_t block) {
  PERDURE_TRY_ASSIGN(const bool listed, touch(block));
  return listed && table_.is_absent(block);
}

// cache.P1. Whoever finds the block absent fills it, the others wait.
Result<bool> PartRoom::settle(std::uint64_t block) {
  if (table_.is_present(block)) return true;
  PERDURE_TRY_ASSIGN(const bool listed, touch(block));
  if (!listed) return false;
  PERDURE_TRY_ASSIGN(const bool taken, table_.take_absent(block));
  if (taken) PERDURE_TRY(fill(block));
  return true;
}

Status PartRoom::read(std::uint64_t block) {
  const std::uint64_t visible = bytes_.visible_in(block);
  if (visible == 0) return Status::success();
  const std::uint64_t begin = bytes_.file_offset(block);
  filled_bytes_.fetch_add(visible, std::memory_order_relaxed);
  const Status read = bytes_.file()->read(begin, bytes_.of(block), visible);
  // What is filled later may be less, and zeros must follow it.
  if (!read.ok()) std::memset(bytes_.of(block), 0, visible);
  return read;
}

Status PartRoom::fill(std::uint64_t block) {
  PERDURE_TRY_ASSIGN(const bool room, take_room(block));
  if (!room) return Status::success();
  const Status filled = read(block);
  table_.give(block, filled.ok() ? BlockState::present : BlockState::absent);
  return filled;
}

Result<bool> PartRoom::take_unread(std::uint64_t block, std::uint64_t bytes) {
  PERDURE_TRY_ASSIGN(const bool listed, touch(block));
  if (!listed || bytes < bytes_.visible_in(block)) return false;
  if (!table_.take(block, BlockState::absent, BlockState::filling)) return false;
  return take_room(block);
}

// Blocks with an entry that says so, and those without one.
std::uint64_t PartRoom::through_bytes() const {
  if (!table_.is_passing()) return 0;
  const std::uint64_t size = bytes_.size_bytes();
  std::uint64_t bytes = 0;
  const auto add = [&](std::uint64_t block) {
    const std::uint64_t begin = bytes_.file_offset(block);
    if (begin < size) bytes += std::min(bytes_.block_bytes(), size - begin);
  };
  const std::uint64_t entries = table_.listed_max();
  const std::uint64_t blocks = std::min(entries, bytes_.blocks_in_use());
  for (std::uint64_t block = table_.next(0); block < blocks; block = table_.next(block + 1)) {
    if (table_.kind_alone(block) == BlockState::through) add(block);
  }
  const std::uint64_t all = part_blocks_for(bytes_.layout(), bytes_.header().node, size);
  if (all > entries) {
    add(all - 1);
    bytes += (all - 1 - entries) * bytes_.block_bytes();
  }
  return bytes;
}

}  // namespace perdure
