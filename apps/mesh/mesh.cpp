// SPDX-License-Identifier: BSD-3-Clause
#include "mesh.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "graphs/mixed.hpp"
#include "job/collective.hpp"

namespace mesh {
namespace {

constexpr double spread_finest = 0.2;  // of heat to each neighbour in a step, in cells of `finest`
constexpr double loss = 0.02;          // of heat, in each step
constexpr double jump_finer = 0.02;    // from cell to cell, above which a block is divided
constexpr double jump_coarser = 0.004;

// Pieces for each rank, in the order of the ranks; what comes is in the order of the senders.
template <typename T>
std::vector<T> exchanged(const std::vector<std::vector<T>>& to) {
  constexpr int bytes = sizeof(T);
  std::vector<int> send_counts, receive_counts(to.size());
  std::vector<T> sent;
  for (const std::vector<T>& pieces : to) {
    send_counts.push_back(bytes * static_cast<int>(pieces.size()));
    sent.insert(sent.end(), pieces.begin(), pieces.end());
  }
  MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const std::vector<int> send_starts = job::starts_of(send_counts);
  const std::vector<int> receive_starts = job::starts_of(receive_counts);
  std::vector<T> received(static_cast<std::size_t>(receive_starts.back() + receive_counts.back()) /
                          sizeof(T));
  MPI_Alltoallv(sent.data(), send_counts.data(), send_starts.data(), MPI_BYTE, received.data(),
                receive_counts.data(), receive_starts.data(), MPI_BYTE, MPI_COMM_WORLD);
  return received;
}

// The lists of all ranks, one after another, and where each begins and the last one ends.
template <typename T>
std::vector<T> gathered(const std::vector<T>& mine, std::vector<std::size_t>& starts) {
  const int bytes = static_cast<int>(mine.size() * sizeof(T));
  std::vector<int> counts(static_cast<std::size_t>(job::rank_count()));
  MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<int> at = job::starts_of(counts);
  at.push_back(at.back() + counts.back());
  std::vector<T> all(static_cast<std::size_t>(at.back()) / sizeof(T));
  MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, all.data(), counts.data(), at.data(), MPI_BYTE,
                 MPI_COMM_WORLD);
  starts.clear();
  for (const int start : at) starts.push_back(static_cast<std::size_t>(start) / sizeof(T));
  return all;
}

// Where the share of `rank` begins when `count` are dealt evenly.
std::size_t share_of(std::size_t count, int rank) {
  return count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(job::rank_count());
}

int dealt_to(std::size_t number, std::size_t count) {
  int rank = 0;
  while (number >= share_of(count, rank + 1)) ++rank;
  return rank;
}

// The cell of a neighbour on `side` that is `deep` cells from the face, and `along` it.
double cell_from_face(const Block& neighbour, Side side, int deep, int along) {
  switch (side) {
    case Side::left:
      return neighbour.cell(block_cells - 1 - deep, along);
    case Side::right:
      return neighbour.cell(deep, along);
    case Side::below:
      return neighbour.cell(along, block_cells - 1 - deep);
    case Side::above:
      break;
  }
  return neighbour.cell(along, deep);
}

// Heat that a cell gets from the source in a step.
double heat_at(double x, double y, std::uint64_t number) {
  const auto place = [number](double first, double speed) {
    const double at = first + speed * static_cast<double>(number);
    return at - std::floor(at);
  };
  const auto apart = [](double one, double other) {
    const double distance = std::abs(one - other);
    return std::min(distance, 1 - distance);
  };
  const double dx = apart(x, place(0.3, 0.0021));
  const double dy = apart(y, place(0.6, 0.0013));
  constexpr double radius = 0.06;
  const double near = 1 - (dx * dx + dy * dy) / (radius * radius);
  return near > 0 ? 0.1 * near : 0;
}

Block quarter_of(const Block& block, int number) {
  Block quarter{.key = block.key.quarter(number)};
  const int first_x = block_cells / 2 * (number % 2);
  const int first_y = block_cells / 2 * (number / 2);
  for (int y = 0; y < block_cells; ++y) {
    for (int x = 0; x < block_cells; ++x) {
      quarter.cell(x, y) = block.cell(first_x + x / 2, first_y + y / 2);
    }
  }
  return quarter;
}

void put_together(Block& whole, const Block& quarter) {
  const int number = quarter.key.number_of_quarter();
  const int first_x = block_cells / 2 * (number % 2);
  const int first_y = block_cells / 2 * (number / 2);
  for (int y = 0; y < block_cells / 2; ++y) {
    for (int x = 0; x < block_cells / 2; ++x) {
      const double lower = quarter.cell(2 * x, 2 * y) + quarter.cell(2 * x + 1, 2 * y);
      const double upper = quarter.cell(2 * x, 2 * y + 1) + quarter.cell(2 * x + 1, 2 * y + 1);
      whole.cell(first_x + x, first_y + y) = 0.25 * (lower + upper);
    }
  }
}

Wish wish_of(const Block& block, int finest) {
  double jump = 0;
  for (int y = 0; y < block_cells; ++y) {
    for (int x = 0; x < block_cells; ++x) {
      const double own = block.cell(x, y);
      if (x != 0) jump = std::max(jump, std::abs(own - block.cell(x - 1, y)));
      if (y != 0) jump = std::max(jump, std::abs(own - block.cell(x, y - 1)));
    }
  }
  if (jump > jump_finer) return block.key.level < finest ? Wish::finer : Wish::same;
  return jump < jump_coarser ? Wish::coarser : Wish::same;
}

}  // namespace

void Mesh::begin() {
  const Tree roots = Tree::of_roots();
  blocks_.clear();
  const std::size_t end = share_of(roots.size(), job::this_rank() + 1);
  for (std::size_t i = share_of(roots.size(), job::this_rank()); i < end; ++i) {
    blocks_.push_back({.key = roots.keys()[i]});
  }
  gather();
}

void Mesh::gather() {
  std::vector<Key> keys;
  for (const Block& block : blocks_) keys.push_back(block.key);
  tree_ = Tree(gathered(keys, starts_));
  link();
}

int Mesh::owner_of(std::size_t number) const {
  return static_cast<int>(std::ranges::upper_bound(starts_, number) - starts_.begin()) - 1;
}

void Mesh::link() {
  const int me = job::this_rank();
  links_.assign(blocks_.size(), {});
  wanted_.assign(static_cast<std::size_t>(job::rank_count()), {});
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    for (const Side side : sides) {
      std::vector<std::size_t>& links = links_[i][static_cast<std::size_t>(side)];
      links = tree_.neighbours(blocks_[i].key, side);
      for (const std::size_t number : links) {
        const int owner = owner_of(number);
        auto& wanted = wanted_[static_cast<std::size_t>(owner)];
        if (owner != me && (wanted.empty() || wanted.back() != i)) wanted.push_back(i);
      }
    }
  }
}

void Mesh::exchange() {
  std::vector<std::vector<Block>> to(wanted_.size());
  for (std::size_t rank = 0; rank < to.size(); ++rank) {
    for (const std::size_t i : wanted_[rank]) to[rank].push_back(blocks_[i]);
  }
  others_ = exchanged(to);
  here_.assign(tree_.size(), nullptr);
  const std::size_t first = starts_[static_cast<std::size_t>(job::this_rank())];
  for (std::size_t i = 0; i < blocks_.size(); ++i) here_[first + i] = &blocks_[i];
  for (const Block& other : others_) here_[tree_.find(other.key)] = &other;
}

// What is on the other side of a face: a cell of the same size, a larger one, or four smaller ones.
double Mesh::beyond(std::size_t block, Side side, int along) const {
  const std::vector<std::size_t>& links = links_[block][static_cast<std::size_t>(side)];
  const Key& key = blocks_[block].key;
  constexpr int half = block_cells / 2;
  if (links.size() == 2) {
    const Block& finer = *here_[links[static_cast<std::size_t>(along / half)]];
    const int at = 2 * (along % half);
    const double outer =
        cell_from_face(finer, side, 0, at) + cell_from_face(finer, side, 0, at + 1);
    const double inner =
        cell_from_face(finer, side, 1, at) + cell_from_face(finer, side, 1, at + 1);
    return 0.25 * (outer + inner);
  }
  const Block& other = *here_[links.front()];
  if (other.key.level == key.level) return cell_from_face(other, side, 0, along);
  const bool upright = side == Side::left || side == Side::right;
  const int half_of_it = upright ? key.y % 2 : key.x % 2;
  return cell_from_face(other, side, 0, half * half_of_it + along / 2);
}

Block Mesh::next_of(std::size_t number, std::uint64_t step) const {
  const Block& block = blocks_[number];
  const double finer = std::ldexp(1.0, block.key.level - finest_);
  const double spread = spread_finest * finer * finer;
  const double width = 1.0 / (block_cells * (root_blocks << block.key.level));
  constexpr int last = block_cells - 1;
  Block next{.key = block.key};
  for (int y = 0; y < block_cells; ++y) {
    for (int x = 0; x < block_cells; ++x) {
      const double own = block.cell(x, y);
      const double left = x != 0 ? block.cell(x - 1, y) : beyond(number, Side::left, y);
      const double right = x != last ? block.cell(x + 1, y) : beyond(number, Side::right, y);
      const double below = y != 0 ? block.cell(x, y - 1) : beyond(number, Side::below, x);
      const double above = y != last ? block.cell(x, y + 1) : beyond(number, Side::above, x);
      const double around = (left + right) + (below + above);
      const double heat = heat_at((block.key.x * block_cells + x + 0.5) * width,
                                  (block.key.y * block_cells + y + 0.5) * width, step);
      next.cell(x, y) = (1 - loss) * own + spread * (around - 4 * own) + heat;
    }
  }
  return next;
}

void Mesh::step(std::uint64_t number) {
  exchange();
  std::vector<Block> next;
  next.reserve(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) next.push_back(next_of(i, number));
  std::ranges::copy(next, blocks_.begin());
}

std::vector<Wish> Mesh::wishes_of_all() const {
  std::vector<Wish> mine;
  for (const Block& block : blocks_) mine.push_back(wish_of(block, finest_));
  std::vector<std::size_t> starts;
  return gathered(mine, starts);
}

void Mesh::adapt() {
  const Tree next = tree_.adapted(wishes_of_all());
  std::vector<std::vector<Block>> to(wanted_.size());
  const auto send = [&](const Block& piece, std::size_t number) {
    to[static_cast<std::size_t>(dealt_to(number, next.size()))].push_back(piece);
  };
  for (const Block& block : blocks_) {
    if (const std::size_t same = next.find(block.key); same != Tree::none) {
      send(block, same);
    } else if (next.find(block.key.quarter(0)) != Tree::none) {
      for (int number = 0; number < 4; ++number) {
        const Block quarter = quarter_of(block, number);
        send(quarter, next.find(quarter.key));
      }
    } else {
      send(block, next.find(block.key.parent()));
    }
  }
  take(exchanged(to), next);
}

// Blocks of the tree, and quarters that become one.
void Mesh::take(const std::vector<Block>& pieces, const Tree& tree) {
  const int me = job::this_rank();
  const std::size_t first = share_of(tree.size(), me);
  blocks_.resize(share_of(tree.size(), me + 1) - first);
  for (const Block& piece : pieces) {
    const std::size_t same = tree.find(piece.key);
    if (same != Tree::none) {
      blocks_[same - first] = piece;
    } else {
      Block& whole = blocks_[tree.find(piece.key.parent()) - first];
      whole.key = piece.key.parent();
      put_together(whole, piece);
    }
  }
  gather();
}

std::uint64_t Mesh::hash() const {
  std::uint64_t sum = 0;
  for (const Block& block : blocks_) {
    job::Hash hash(graphs::mixed(block.key.place() << 4U | static_cast<unsigned>(block.key.level)));
    for (const double value : block.cells) hash.add(value);
    sum += graphs::mixed(hash.value());
  }
  return job::sum_over_ranks(sum);
}

}  // namespace mesh
