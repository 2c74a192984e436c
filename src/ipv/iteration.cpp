// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/iteration.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "pmem/region.hpp"

namespace perdure {
namespace {

// A nest's end makes the address read-only, and the next nest of the iteration writable again. With
// more nests than this, that costs more than it saves.
constexpr unsigned sealed_nests_max = 4;

// Less is not worth a call of the device: what it counts waits for all stores past the cache.
constexpr std::uint64_t past_cache_bytes_min = 512;

}  // namespace

void Iteration::begin(std::uint64_t old_offset, std::uint64_t new_offset, const LineSet& lacking) {
  old_offset_ = old_offset;
  new_offset_ = new_offset;
  lacking_ = &lacking;
  current_ = {};
  nests_ = 0;
}

void Iteration::begin_whole(std::uint64_t new_offset, const LineSet& lacking) {
  begin(new_offset, new_offset, lacking);
  note_complete();
}

void Iteration::end(bool plain) {
  usual_nests_ = nests_;
  usually_plain_ = plain;
}

void Iteration::copy_through_cache(ByteRange run) const {
  if (run.begin >= run.end) return;
  std::memcpy(device_.base() + new_offset_ + run.begin, old_contents() + run.begin,
              run.end - run.begin);
}

Iteration::Copied Iteration::copy_old(ByteRange range, LineSet& dirty) {
  Copied copied;
  lacking_->for_each_run(range, [&](ByteRange run) {
    copied.bytes += run.end - run.begin;
    ByteRange lines{align_up(run.begin, cache_line_bytes),
                    run.end / cache_line_bytes * cache_line_bytes};
    if (lines.end < lines.begin + past_cache_bytes_min) lines = {run.end, run.end};
    for (const ByteRange& end :
         {ByteRange{run.begin, lines.begin}, ByteRange{lines.end, run.end}}) {
      copy_through_cache(end);
      dirty.add(end);
    }
    if (lines.begin == lines.end) return;
    device_.copy(new_offset_ + lines.begin, old_contents() + lines.begin, lines.end - lines.begin);
    copied.past_cache_bytes += lines.end - lines.begin;
  });
  return copied;
}

bool Iteration::place(ByteRange box) {
  const bool first = current_.begin == current_.end;
  PERDURE_ASSERT(first ||
                 current_.end - current_.begin == bytes_);  // boxes end before others begin
  if (first) current_ = box;
  return first;
}

// What is not current in new; it is from here on.
std::array<ByteRange, 2> Iteration::take_missing() {
  const ByteRange current = std::exchange(current_, {0, bytes_});
  if (current.begin == current.end) return {ByteRange{0, bytes_}, ByteRange{}};
  return {ByteRange{0, current.begin}, ByteRange{current.end, bytes_}};
}

Iteration::Copied Iteration::complete_in_nest(LineSet& dirty) {
  Copied all;
  for (const ByteRange& range : take_missing()) {
    const Copied copied = copy_old(range, dirty);
    all.bytes += copied.bytes;
    all.past_cache_bytes += copied.past_cache_bytes;
  }
  return all;
}

std::uint64_t Iteration::complete_in_cache() {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : take_missing()) {
    lacking_->for_each_run(range, [&](ByteRange run) {
      device_.store(new_offset_ + run.begin, device_.base() + old_offset_ + run.begin,
                    run.end - run.begin);
      bytes += run.end - run.begin;
    });
  }
  return bytes;
}

bool Iteration::seal_nest() {
  if (nests_ >= sealed_nests_max) return false;
  ++nests_;
  return true;
}

}  // namespace perdure
