// SPDX-License-Identifier: BSD-3-Clause
//
// The problem: in how many ways N queens fit on a board of N by N with none attacking another.
// A task is a placement of the queens of the first rows; its value, how many ways it leaves for the
// others. Tasks differ much in what they cost, and nothing tells before.
#pragma once

#include <cstdint>
#include <vector>

namespace tasks {

constexpr int board_max = 15;  // a task is one word: 4 bits for each queen, and for their number

using Task = std::uint64_t;

class Queens {
 public:
  explicit Queens(int board) : board_(board) {}
  static constexpr Task all = 0;  // no queen is placed

  static int placed(Task task) { return static_cast<int>(task & 15U); }
  // One more queen each, in the next row; none if there is no place for it.
  std::vector<Task> parts(Task task) const;
  std::uint64_t ways(Task task) const;

 private:
  struct Attacked {
    std::uint32_t columns = 0, left = 0, right = 0;  // of the next row
  };
  static Attacked after(Attacked before, int column);
  Attacked attacked_by(Task task) const;
  std::uint64_t ways_from(Attacked attacked, int row) const;

  int board_;
};

}  // namespace tasks
