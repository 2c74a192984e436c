// SPDX-License-Identifier: BSD-3-Clause
#include "distances.hpp"

#include <mpi.h>

#include <algorithm>

#include "job/collective.hpp"

namespace matpower {

Distances::Distances(const Block& own, std::uint64_t power_max)
    : own_(own), power_max_(power_max), lengths_(own.cells()) {}

void Distances::take(std::uint64_t power, const Cell* cells) {
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (lengths_[i] == 0 && cells[i] != 0) lengths_[i] = static_cast<std::uint32_t>(power);
  }
}

std::optional<std::uint64_t> Distances::between(std::uint64_t from, std::uint64_t to) const {
  if (from == to) return 0;
  std::uint64_t length = 0;
  const bool own = from >= own_.rows.begin && from < own_.rows.end && to >= own_.columns.begin &&
                   to < own_.columns.end;
  if (own) {
    const std::size_t row = from - own_.rows.begin;
    length = lengths_[row * own_.columns.size() + (to - own_.columns.begin)];
  }
  length = job::max_over_ranks(length);
  if (length == 0) return std::nullopt;
  return length;
}

DistanceSummary Distances::summary(const Grid& grid) const {
  DistanceSummary summary;
  summary.pairs.assign(power_max_, 0);
  std::vector<std::uint64_t> farthest(own_.rows.size());  // power_max_ + 1: beyond
  std::size_t at = 0;
  for (std::uint64_t i = own_.rows.begin; i < own_.rows.end; ++i) {
    for (std::uint64_t j = own_.columns.begin; j < own_.columns.end; ++j, ++at) {
      if (i == j) continue;
      const std::uint64_t length = lengths_[at] > 0 ? lengths_[at] : power_max_ + 1;
      std::uint64_t& count = length > power_max_ ? summary.beyond : summary.pairs[length - 1];
      ++count;
      std::uint64_t& row = farthest[i - own_.rows.begin];
      row = std::max(row, length);
    }
  }
  job::add_over_ranks(summary.pairs);
  summary.beyond = job::sum_over_ranks(summary.beyond);

  MPI_Comm row_ranks = MPI_COMM_NULL;  // the ranks that have the same rows
  MPI_Comm_split(MPI_COMM_WORLD, grid.row, grid.column, &row_ranks);
  std::uint64_t* all = farthest.data();
  MPI_Allreduce(MPI_IN_PLACE, all, static_cast<int>(farthest.size()), MPI_UINT64_T, MPI_MAX,
                row_ranks);
  MPI_Comm_free(&row_ranks);
  std::uint64_t least = power_max_ + 1;
  std::uint64_t largest = 0;
  std::uint64_t reach_all = 0;
  for (const std::uint64_t length : farthest) {
    if (length > power_max_) continue;
    least = std::min(least, length);
    largest = std::max(largest, length);
    ++reach_all;
  }
  summary.reach_all = job::sum_over_ranks(grid.column == 0 ? reach_all : 0);
  least = job::min_over_ranks(least);
  largest = job::max_over_ranks(largest);
  if (summary.reach_all > 0) {
    summary.radius = least;
    summary.diameter = largest;
  }
  return summary;
}

}  // namespace matpower
