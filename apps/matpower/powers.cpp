// SPDX-License-Identifier: BSD-3-Clause
//
// Cannon's algorithm multiplies q x q blocks on q x q ranks in q steps. In step s, rank (r, c) adds
// the product of the blocks (r, k) and (k, c) with k = r + c + s mod q: no two ranks of a row have
// the same left block, and no two of a column the same right one, at any time. Where memory is
// distributed, ranks pass blocks to their neighbours between steps. Here the files are the memory
// (the paper, section 3.2: "treating the file as a huge distributed shared memory"), so each rank
// reads both blocks of a step where they are, and writes its block of the product when it is
// complete. A power moves 2 q + 1 blocks on each rank, (2 q + 1) n^2 bytes in all.
#include "powers.hpp"

#include "job/collective.hpp"
#include "job/stopwatch.hpp"

namespace matpower {

Powers::Powers(const Grid& grid, const Options& options, MatrixFile& adjacency, Traffic& traffic,
               Progress& progress)
    : grid_(grid),
      options_(options),
      adjacency_(adjacency),
      traffic_(traffic),
      progress_(progress) {
  job::on_every_rank([&] {
    // No block is larger than the one in the last row and column.
    const std::size_t cells_max = grid.block(grid.side - 1, grid.side - 1).cells();
    left_.resize(cells_max);
    right_.resize(cells_max);
    cells_.resize(grid.own().cells());
    product_.start(grid.own());
    if (options.shortest) distances_.emplace(grid.own(), options.power);
  });
}

void Powers::run(MatrixFile& result, MatrixFile* scratch) {
  if (options_.power == 1 || options_.shortest) adjacency_.read(grid_.own(), cells_.data());
  if (distances_) distances_->take(1, cells_.data());
  MatrixFile* current = &adjacency_;
  for (std::uint64_t power = 2; power <= options_.power; ++power) {
    MatrixFile* next = (options_.power - power) % 2 == 0 ? &result : scratch;
    multiply(*current, *next, power);
    current = next;
  }
  traffic_.agree();
}

void Powers::multiply(MatrixFile& current, MatrixFile& next, std::uint64_t power) {
  product_.start(grid_.own());
  for (int step = 0; step < grid_.side; ++step) {
    const int k = (grid_.row + grid_.column + step) % grid_.side;
    adjacency_.read(grid_.block(grid_.row, k), left_.data());
    current.read(grid_.block(k, grid_.column), right_.data());
    const job::Stopwatch watch;
    product_.add(left_.data(), right_.data(), grid_.range(k).size());
    compute_s_ += watch.seconds();
    progress_.step();
  }
  const job::Stopwatch watch;
  finish(power);
  compute_s_ += watch.seconds();
  next.write(grid_.own(), cells_.data());
  // The next product reads blocks of others, and writes over the file that this one read.
  next.publish(options_.sync_each);
  traffic_.agree();
}

void Powers::finish(std::uint64_t power) {
  over_ = product_.narrow(options_.arithmetic, cells_.data());
  if (power == 2) second_over_ = over_;
  if (power == 3) third_trace_ = product_.trace();
  if (distances_) distances_->take(power, cells_.data());
}

}  // namespace matpower
