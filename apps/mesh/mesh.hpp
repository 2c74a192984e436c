// SPDX-License-Identifier: BSD-3-Clause
//
// A block-adaptive mesh: heat that spreads on a periodic square, from a source that wanders. Blocks
// of 8 by 8 cells are divided where the heat changes much from cell to cell, and put together where
// it does not.
//
// All ranks know which blocks there are (tree.hpp); each has a share of them, in the order of the
// list, and what its blocks touch comes from their ranks. What happens to a cell depends on cells
// of neighbours alone, in an order that is always the same, so that the bits of the answer do not
// depend on the number of ranks.
//
// All are collective. Threads: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"

namespace mesh {

constexpr int block_cells = 8;  // in each direction

struct Block {
  Key key;
  std::int32_t unused = 0;
  std::array<double, block_cells * block_cells> cells{};

  double& cell(int x, int y) { return cells[static_cast<std::size_t>(x + block_cells * y)]; }
  double cell(int x, int y) const { return cells[static_cast<std::size_t>(x + block_cells * y)]; }
};
static_assert(sizeof(Block) == 528);

class Mesh {
 public:
  // `blocks`, this rank's, is the state; it outlives this. Blocks have levels 0 to `finest`.
  Mesh(std::vector<Block>& blocks, int finest) : blocks_(blocks), finest_(finest) {}

  // This rank's share of a mesh of the coarsest blocks, which are cold.
  void begin();
  // After a restart, with whatever share this rank has got.
  void gather();
  void step(std::uint64_t number);
  // Divides blocks and puts them together, and deals them anew.
  void adapt();

  std::uint64_t block_count() const { return tree_.size(); }
  // Of all blocks, in any order.
  std::uint64_t hash() const;

 private:
  using Links = std::array<std::vector<std::size_t>, sides.size()>;

  void link();
  int owner_of(std::size_t number) const;
  void exchange();
  double beyond(std::size_t block, Side side, int along) const;
  Block next_of(std::size_t block, std::uint64_t number) const;
  std::vector<Wish> wishes_of_all() const;
  void take(const std::vector<Block>& pieces, const Tree& tree);

  std::vector<Block>& blocks_;
  const int finest_;
  Tree tree_;                                     // of all ranks
  std::vector<std::size_t> starts_;               // of each rank's share of it, and its end
  std::vector<Links> links_;                      // of each own block, to numbers in the tree
  std::vector<std::vector<std::size_t>> wanted_;  // by rank: own blocks that its blocks touch
  std::vector<Block> others_;                     // blocks of other ranks that own ones touch
  std::vector<const Block*> here_;  // by number in the tree; null: neither own nor touched
};

}  // namespace mesh
