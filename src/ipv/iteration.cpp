// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/iteration.hpp"

namespace perdure {
namespace {

// A nest's end makes the address read-only, and the next nest of the iteration writable again. With
// more nests than this, that costs more than it saves.
constexpr unsigned sealed_nests_max = 4;

}  // namespace

void Iteration::begin(std::uint64_t old_offset, std::uint64_t new_offset, const LineSet& lacking) {
  old_offset_ = old_offset;
  new_offset_ = new_offset;
  lacking_ = &lacking;
  interval_.reset();
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

std::uint64_t Iteration::copy_old(ByteRange range) {
  std::uint64_t bytes = 0;
  lacking_->for_each_run(range, [&](ByteRange run) {
    device_.copy(new_offset_ + run.begin, device_.base() + old_offset_ + run.begin,
                 run.end - run.begin);
    bytes += run.end - run.begin;
  });
  return bytes;
}

Iteration::Placed Iteration::place(ByteRange row) {
  const RowPlan plan = interval_.row(row);
  Placed placed{plan.loads_from_old, plan.loads_from_old, 0};
  for (const ByteRange& range : plan.copies) placed.copied_bytes += copy_old(range);
  const bool inside =
      plan.copies[0].begin >= plan.copies[0].end && plan.copies[1].begin >= plan.copies[1].end;
  placed.fresh = plan.loads_from_old || inside;
  return placed;
}

std::uint64_t Iteration::complete_past_cache() {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : interval_.complete(bytes_)) bytes += copy_old(range);
  return bytes;
}

std::uint64_t Iteration::complete_in_cache() {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : interval_.complete(bytes_)) {
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
