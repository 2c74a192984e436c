// SPDX-License-Identifier: BSD-3-Clause
#include "queens.hpp"

namespace tasks {

Queens::Attacked Queens::after(Attacked before, int column) {
  const std::uint32_t queen = std::uint32_t{1} << column;
  return {before.columns | queen, (before.left | queen) << 1U, (before.right | queen) >> 1U};
}

Queens::Attacked Queens::attacked_by(Task task) const {
  Attacked attacked;
  for (int row = 0; row < placed(task); ++row) {
    attacked = after(attacked, static_cast<int>(task >> (4 * (row + 1)) & 15U));
  }
  return attacked;
}

std::vector<Task> Queens::parts(Task task) const {
  const int row = placed(task);
  const Attacked attacked = attacked_by(task);
  const std::uint32_t taken = attacked.columns | attacked.left | attacked.right;
  std::vector<Task> parts;
  for (int column = 0; column < board_; ++column) {
    if ((taken >> column & 1U) != 0) continue;
    parts.push_back((task + 1) | static_cast<Task>(column) << (4 * (row + 1)));
  }
  return parts;
}

std::uint64_t Queens::ways(Task task) const {
  return ways_from(attacked_by(task), placed(task));
}

std::uint64_t Queens::ways_from(Attacked attacked, int row) const {
  if (row == board_) return 1;
  const std::uint32_t taken = attacked.columns | attacked.left | attacked.right;
  std::uint64_t ways = 0;
  for (int column = 0; column < board_; ++column) {
    if ((taken >> column & 1U) == 0) ways += ways_from(after(attacked, column), row + 1);
  }
  return ways;
}

}  // namespace tasks
