// SPDX-License-Identifier: BSD-3-Clause
#include "pool/box_cells.hpp"

#include <algorithm>

namespace perdure {
namespace {

std::uint64_t index_in(const CellBox& box, const CellBox& shared,
                       const std::vector<std::uint64_t>& at) {
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    index = index * box.extents[i] + (shared.first[i] + at[i] - box.first[i]);
  }
  return index;
}

// What is left of `box` without `taken`, a part of it: slabs on both sides, one dimension after
// the other.
void add_rest(CellBox box, const CellBox& taken, std::vector<CellBox>& rest) {
  for (std::size_t i = 0; i < box.first.size(); ++i) {
    const std::uint64_t end = box.first[i] + box.extents[i];
    const std::uint64_t taken_end = taken.first[i] + taken.extents[i];
    CellBox slab = box;
    slab.extents[i] = taken.first[i] - box.first[i];
    if (slab.extents[i] != 0) rest.push_back(slab);
    slab.first[i] = taken_end;
    slab.extents[i] = end - taken_end;
    if (slab.extents[i] != 0) rest.push_back(slab);
    box.first[i] = taken.first[i];
    box.extents[i] = taken.extents[i];
  }
}

}  // namespace

std::uint64_t cells_of(const CellBox& box) {
  std::uint64_t cells = 1;
  for (const std::uint64_t extent : box.extents) cells *= extent;
  return cells;
}

std::optional<CellBox> shared_cells(const CellBox& one, const CellBox& other) {
  CellBox shared = one;
  for (std::size_t i = 0; i < one.first.size(); ++i) {
    const std::uint64_t begin = std::max(one.first[i], other.first[i]);
    const std::uint64_t end =
        std::min(one.first[i] + one.extents[i], other.first[i] + other.extents[i]);
    if (begin >= end) return std::nullopt;
    shared.first[i] = begin;
    shared.extents[i] = end - begin;
  }
  return shared;
}

std::uint64_t uncovered_cells(const CellBox& box, std::span<const CellBox> others) {
  std::vector<CellBox> left{box};
  for (const CellBox& other : others) {
    std::vector<CellBox> rest;
    for (CellBox& each : left) {
      const auto taken = shared_cells(each, other);
      if (taken) {
        add_rest(std::move(each), *taken, rest);
      } else {
        rest.push_back(std::move(each));
      }
    }
    left = std::move(rest);
  }
  std::uint64_t cells = 0;
  for (const CellBox& each : left) cells += cells_of(each);
  return cells;
}

CellRuns::CellRuns(const CellBox& from, const CellBox& to) : from_(from), to_(to) {
  auto shared = shared_cells(from, to);
  if (!shared || from.first.empty()) return;
  shared_ = std::move(*shared);
  done_ = false;
  at_.assign(shared_.first.size(), 0);
  whole_ = at_.size() - 1;
  while (whole_ > 0 && shared_.extents[whole_] == from_.extents[whole_] &&
         shared_.extents[whole_] == to_.extents[whole_]) {
    --whole_;
  }
}

std::optional<CellRun> CellRuns::next() {
  if (done_) return std::nullopt;
  CellRun run{index_in(from_, shared_, at_), index_in(to_, shared_, at_), 1};
  for (std::size_t i = whole_; i < at_.size(); ++i) run.count *= shared_.extents[i];
  std::size_t i = whole_;
  while (i > 0 && ++at_[i - 1] == shared_.extents[i - 1]) at_[--i] = 0;
  done_ = i == 0;
  return run;
}

}  // namespace perdure
