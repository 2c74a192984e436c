// SPDX-License-Identifier: BSD-3-Clause
//
// Particles in cells: charges on a periodic square of N by N cells move in the field of their own
// density; some divide and some end, so that their number changes in each step.
//
// A rank has some rows of cells, the particles in them, and the potential there. What happens to a
// particle, and to a cell, depends on nothing but whole counts and values of neighbours, in an
// order that is always the same, so that the bits of the answer do not depend on the number of
// ranks.
//
// All are collective. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plasma {

struct Particle {
  double x = 0, y = 0;  // in cells
  double vx = 0, vy = 0;
  std::uint64_t number = 0;
};

// The rows of cells of one of the ranks.
struct Rows {
  int cells = 0;  // of a row, and rows of all ranks
  int rank = 0;
  int ranks = 1;
  int first(int of_rank) const {
    return static_cast<int>(static_cast<std::int64_t>(cells) * of_rank / ranks);
  }
  int first() const { return first(rank); }
  int count() const { return first(rank + 1) - first(rank); }
  int owner_of(int row) const;
  std::size_t cell_count() const {
    return static_cast<std::size_t>(count()) * static_cast<std::size_t>(cells);
  }
};

class Plasma {
 public:
  // `particles` and `potential`, of rows.cell_count() cells, are the state; they outlive this.
  Plasma(const Rows& rows, std::vector<Particle>& particles, std::span<double> potential);

  // This rank's share of `count` particles, and no potential.
  void begin(std::uint64_t count);
  // After a restart: particles go to the ranks that have their rows.
  void migrate();
  void step(std::uint64_t number);

  std::uint64_t particle_count() const;
  // Of the particles in any order, and of the cells.
  std::uint64_t hash() const;

 private:
  std::size_t row_length() const { return static_cast<std::size_t>(rows_.cells); }
  void count_charges();
  void exchange_halo();
  void relax();
  void push();
  void divide_and_end(std::uint64_t number);

  const Rows rows_;
  std::vector<Particle>& particles_;
  const std::span<double> potential_;
  std::vector<double> with_halo_;  // the potential, with a row of each neighbour
  std::vector<double> relaxed_;
  std::vector<std::int32_t> charges_;  // in each cell
};

}  // namespace plasma
