// SPDX-License-Identifier: BSD-3-Clause
//
// Powers: the powers of an adjacency matrix by Cannon's algorithm, with files as the distributed
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "distances.hpp"
#include "grid.hpp"
#include "matrix_file.hpp"
#include "options.hpp"
#include "product.hpp"
#include "progress.hpp"

namespace matpower {

class Powers {
 public:
  // Collective: gets the memory, or throws SharedError. All must outlive the object.
  Powers(const Grid& grid, const Options& options, MatrixFile& adjacency, Traffic& traffic,
         Progress& progress);

  // Collective. Makes powers 2, 3, … options.power. Power m is written to `result` if
  // options.power - m is even, else to `scratch`, which may be null where no power is. Throws
  // SharedError.
  void run(MatrixFile& result, MatrixFile* scratch);

  double compute_s() const { return compute_s_; }

  // Of the last power: this rank's block, and how many of its counts exceeded 255.
  const std::vector<Cell>& cells() const { return cells_; }
  std::uint64_t over() const { return over_; }

  // This rank's part of the trace of the third power, whose cells are not narrowed; how many counts
  // of its block of the second power exceeded 255, for which the trace is then not exact.
  std::uint64_t third_trace() const { return third_trace_; }
  std::uint64_t second_over() const { return second_over_; }

  // Only with options.shortest.
  const std::optional<Distances>& distances() const { return distances_; }

 private:
  void multiply(MatrixFile& current, MatrixFile& next, std::uint64_t power);
  void finish(std::uint64_t power);

  const Grid& grid_;
  const Options& options_;
  MatrixFile& adjacency_;
  Traffic& traffic_;
  Progress& progress_;
  ProductBlock product_;
  std::vector<Cell> left_, right_, cells_;
  std::optional<Distances> distances_;
  double compute_s_ = 0;
  std::uint64_t over_ = 0, second_over_ = 0, third_trace_ = 0;
};

}  // namespace matpower
