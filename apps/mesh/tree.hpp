// SPDX-License-Identifier: BSD-3-Clause
//
// Tree: which blocks a mesh has. A block of level 0 is one of root_blocks by root_blocks; one of
// level n + 1 is a quarter of one of level n. Blocks do not overlap, fill the periodic square, and
// differ from their neighbours by at most one level.
//
// They are in the order of a Z curve, so that equal shares of the list are compact, and the four
// quarters of a block follow one another. Pure: the same on any number of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mesh {

constexpr std::int32_t root_blocks = 4;  // in each direction
constexpr std::int32_t levels_max = 8;

struct Key {
  std::int32_t level = 0;
  std::int32_t x = 0, y = 0;  // in blocks of its level

  bool operator==(const Key&) const = default;
  // Along the Z curve. No two blocks of a tree have the same place.
  std::uint64_t place() const;
  Key parent() const { return {level - 1, x / 2, y / 2}; }
  Key quarter(int number) const { return {level + 1, 2 * x + number % 2, 2 * y + number / 2}; }
  int number_of_quarter() const { return x % 2 + 2 * (y % 2); }
};

enum class Side : std::uint8_t { left, right, below, above };
constexpr std::array<Side, 4> sides{Side::left, Side::right, Side::below, Side::above};

// The block of the same level there.
Key beside(const Key& key, Side side);

enum class Wish : std::int32_t { coarser = -1, same = 0, finer = 1 };

class Tree {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  Tree() = default;
  // In the order of the curve.
  explicit Tree(std::vector<Key> keys);
  static Tree of_roots();

  const std::vector<Key>& keys() const { return keys_; }
  std::size_t size() const { return keys_.size(); }
  std::size_t find(const Key& key) const;
  // The blocks that touch this side of the block `key`: one, or the two finer ones in order.
  std::vector<std::size_t> neighbours(const Key& key, Side side) const;
  // Of what the blocks wish, as much as keeps neighbours within one level: what is to be finer
  // becomes so, and makes its neighbours so. Four quarters become one if all of them wish it.
  Tree adapted(std::vector<Wish> wishes) const;

 private:
  void make_room_for_finer(std::vector<Wish>& wishes) const;
  bool may_become_one(std::size_t first, const std::vector<Wish>& wishes) const;

  std::vector<Key> keys_;
  std::vector<std::uint64_t> places_;  // of them, ascending
};

}  // namespace mesh
