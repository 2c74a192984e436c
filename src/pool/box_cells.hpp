// SPDX-License-Identifier: BSD-3-Clause
//
// Box cells: which cells of a global array boxes have in common, and where they are in each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace perdure {

// Cells [first, first + extents) of each dimension, in row-major order.
struct CellBox {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> extents;
  bool operator==(const CellBox&) const = default;
};

std::uint64_t cells_of(const CellBox& box);
// Both have as many dimensions. Absent: no cell.
std::optional<CellBox> shared_cells(const CellBox& one, const CellBox& other);
// Cells of `box` that are in none of `others`.
std::uint64_t uncovered_cells(const CellBox& box, std::span<const CellBox> others);

// Cells that lie one after the other in two boxes: from which cell of each on, and how many.
struct CellRun {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t count = 0;
};

// Of the cells that both have, in order; each run is as long as can be within a row of one of them.
class CellRuns {
 public:
  CellRuns(const CellBox& from, const CellBox& to);
  // Absent: there is none left.
  std::optional<CellRun> next();

 private:
  CellBox shared_;
  CellBox from_;
  CellBox to_;
  std::vector<std::uint64_t> at_;  // in shared_
  std::size_t whole_ = 0;          // dimensions after this one are whole in both
  bool done_ = true;
};

}  // namespace perdure
