// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/grid.hpp"

#include <algorithm>
#include <cstddef>

namespace perdure {
namespace {

struct Grid {
  RunList& runs;
  const DatatypeMap& item;
  const std::vector<GridAxis>& axes;
};

// `row` counts rows of this axis that lie before, in the whole array.
void add_axis(const Grid& grid, std::size_t axis, std::int64_t row) {
  const std::int64_t begin = row * grid.axes[axis].length;
  for (const IndexRun& chosen : grid.axes[axis].chosen) {
    if (grid.runs.full()) return;
    if (axis + 1 == grid.axes.size()) {
      const std::int64_t offset = (begin + chosen.first) * grid.item.extent_bytes;
      grid.runs.add_items(grid.item, offset, chosen.count);
      continue;
    }
    for (std::int64_t i = 0; i < chosen.count; ++i) {
      add_axis(grid, axis + 1, begin + chosen.first + i);
    }
  }
}

}  // namespace

std::vector<IndexRun> distribute(Distribution distribution, std::int64_t length,
                                 std::int64_t block_length, std::int64_t places,
                                 std::int64_t place) {
  if (distribution == Distribution::none) return {{0, length}};
  if (block_length == 0) {
    block_length = distribution == Distribution::cyclic ? 1 : (length + places - 1) / places;
  }
  std::vector<IndexRun> chosen;
  for (std::int64_t first = place * block_length; first < length; first += places * block_length) {
    chosen.push_back({first, std::min(block_length, length - first)});
    if (distribution == Distribution::block) break;
  }
  return chosen;
}

void add_grid(RunList& runs, const DatatypeMap& item, const std::vector<GridAxis>& axes) {
  if (axes.empty()) return;
  add_axis({runs, item, axes}, 0, 0);
}

}  // namespace perdure
