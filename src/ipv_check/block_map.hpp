// SPDX-License-Identifier: BSD-3-Clause
//
// BlockMap: which tracked memory an address belongs to.
//
// Blocks do not overlap: one that is put where others are cuts them, and what of them is left goes
// on without its history. Blocks keep their addresses until they are taken out. `changes`
// counts the changes of the map: until the next one, what find() returned may be kept.
//
// Threads: one at a time. No failure but std::bad_alloc.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "ipv_check/byte_masks.hpp"
#include "ipv_check/tracked.hpp"

namespace perdure::ipv_check {

// What `record` knows of eight bytes.
struct RecordWord {
  std::uint32_t iteration = 0;  // to which the masks that end in _now belong
  std::uint32_t stored_in = 0;  // the last one before it that stored here, to stored_last
  ByteMask stored_now = 0;
  ByteMask read_first_now = 0;  // before being stored to
  ByteMask read_now = 0;
  ByteMask stored = 0;  // in an earlier iteration
  ByteMask stored_last = 0;
  ByteMask carried = 0;
  ByteMask alive_after[2] = {0, 0};  // an even iteration, an odd one: carried from there
  ByteMask rewritten = 0;
  ByteMask read = 0;

  // Makes the masks those of iteration `to`, and keeps what the one before means.
  void turn(std::uint32_t to) {
    note_carried(static_cast<ByteMask>(read_first_now & stored));
    rewritten |= minus(stored_now, read_first_now);
    read |= read_now;
    stored |= stored_now;
    if (stored_now != 0) {
      stored_in = iteration;
      stored_last = stored_now;
    }
    stored_now = read_first_now = read_now = 0;
    iteration = to;
  }

 private:
  // Bytes that were stored to in one iteration are alive after it, and until they are read.
  void note_carried(ByteMask bytes) {
    carried |= bytes;
    const bool just_before = stored_in + 1 == iteration;
    const auto once = static_cast<ByteMask>(just_before ? bytes & stored_last : 0);
    alive_after[stored_in % 2] |= once;
    for (ByteMask& alive : alive_after) alive |= minus(bytes, once);
  }
};
static_assert(sizeof(RecordWord) == 20);

struct Block {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  Tracked* tracked = nullptr;

  struct Free {
    void operator()(RecordWord* words) const { std::free(words); }
  };
  // Null until the loop touches the block; from calloc, so that only touched pages cost memory.
  std::unique_ptr<RecordWord, Free> words;

  std::size_t bytes() const { return end - begin; }
};

class BlockMap {
 public:
  using Leaves = std::function<void(Block&)>;

  // `leaves` is called with each block that is taken out, cut or not.
  explicit BlockMap(Leaves leaves) : leaves_(std::move(leaves)) {}

  // Of at least one byte.
  void put(std::uintptr_t begin, std::uintptr_t end, Tracked& tracked);
  // Takes out what of [begin, end) belongs to blocks of the kind `kind`.
  void take(std::uintptr_t begin, std::uintptr_t end, TrackedKind kind);

  struct Found {
    std::uintptr_t begin;  // of the block, or of the gap between two
    std::uintptr_t end;
    Block* block;  // null: a gap
  };
  Found find(std::uintptr_t address);

  template <typename Use>
  void for_all(Use use) {
    for (auto& [begin, block] : blocks_) use(block);
  }

  std::uint32_t changes() const { return changes_; }

 private:
  using Place = std::map<std::uintptr_t, Block>::iterator;
  Place first_overlap(std::uintptr_t begin);
  Place cut_out(Place place, std::uintptr_t begin, std::uintptr_t end);
  void insert(std::uintptr_t begin, std::uintptr_t end, Tracked& tracked);

  Leaves leaves_;
  std::map<std::uintptr_t, Block> blocks_;  // by begin
  std::uint32_t changes_ = 1;
};

}  // namespace perdure::ipv_check
