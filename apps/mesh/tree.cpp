// SPDX-License-Identifier: BSD-3-Clause
#include "tree.hpp"

#include <algorithm>

namespace mesh {
namespace {

// Bits of a coordinate, with a zero before each.
std::uint64_t spread(std::uint64_t bits) {
  std::uint64_t apart = 0;
  for (unsigned i = 0; i < 32; ++i) apart |= (bits >> i & 1U) << 2 * i;
  return apart;
}

// The two quarters of the block beside `key` that touch it, in order along the side.
std::array<int, 2> touching_quarters(Side side) {
  switch (side) {
    case Side::left:
      return {1, 3};
    case Side::right:
      return {0, 2};
    case Side::below:
      return {2, 3};
    case Side::above:
      break;
  }
  return {0, 1};
}

}  // namespace

std::uint64_t Key::place() const {
  const auto shift = static_cast<unsigned>(levels_max + 1 - level);  // quarters may be asked for
  return spread(static_cast<std::uint64_t>(x) << shift) |
         spread(static_cast<std::uint64_t>(y) << shift) << 1U;
}

Key beside(const Key& key, Side side) {
  const std::int32_t blocks = root_blocks << key.level;
  Key other = key;
  if (side == Side::left) other.x = (key.x + blocks - 1) % blocks;
  if (side == Side::right) other.x = (key.x + 1) % blocks;
  if (side == Side::below) other.y = (key.y + blocks - 1) % blocks;
  if (side == Side::above) other.y = (key.y + 1) % blocks;
  return other;
}

Tree::Tree(std::vector<Key> keys) : keys_(std::move(keys)), places_(keys_.size()) {
  std::ranges::transform(keys_, places_.begin(), &Key::place);
}

Tree Tree::of_roots() {
  std::vector<Key> keys;
  for (std::int32_t y = 0; y < root_blocks; ++y) {
    for (std::int32_t x = 0; x < root_blocks; ++x) keys.push_back({0, x, y});
  }
  std::ranges::sort(keys, {}, &Key::place);
  return Tree(std::move(keys));
}

std::size_t Tree::find(const Key& key) const {
  const auto found = std::ranges::lower_bound(places_, key.place());
  const auto at = static_cast<std::size_t>(found - places_.begin());
  return at < keys_.size() && keys_[at] == key ? at : none;
}

std::vector<std::size_t> Tree::neighbours(const Key& key, Side side) const {
  const Key other = beside(key, side);
  if (const std::size_t same = find(other); same != none) return {same};
  if (other.level > 0) {
    if (const std::size_t coarser = find(other.parent()); coarser != none) return {coarser};
  }
  std::vector<std::size_t> finer;
  for (const int number : touching_quarters(side)) finer.push_back(find(other.quarter(number)));
  return finer;
}

// What touches a block that becomes finer must not be two levels coarser then. A coarser block that
// is to become finer for that may ask the same of others.
void Tree::make_room_for_finer(std::vector<Wish>& wishes) const {
  std::vector<std::size_t> finer;
  for (std::size_t i = 0; i < size(); ++i) {
    if (wishes[i] == Wish::finer) finer.push_back(i);
  }
  while (!finer.empty()) {
    const Key& key = keys_[finer.back()];
    finer.pop_back();
    for (const Side side : sides) {
      for (const std::size_t at : neighbours(key, side)) {
        if (keys_[at].level >= key.level || wishes[at] == Wish::finer) continue;
        wishes[at] = Wish::finer;
        finer.push_back(at);
      }
    }
  }
}

// `first` is the first quarter of a block, of which all must wish it, and no block beside it may be
// finer than a quarter, or become so.
bool Tree::may_become_one(std::size_t first, const std::vector<Wish>& wishes) const {
  const Key key = keys_[first];
  if (key.level == 0 || key.number_of_quarter() != 0 || first + 4 > size()) return false;
  for (std::size_t i = first; i < first + 4; ++i) {
    if (keys_[i] != key.parent().quarter(static_cast<int>(i - first))) return false;
    if (wishes[i] != Wish::coarser) return false;
    for (const Side side : sides) {
      for (const std::size_t at : neighbours(keys_[i], side)) {
        const std::int32_t level = keys_[at].level + (wishes[at] == Wish::finer ? 1 : 0);
        if (level > key.level) return false;
      }
    }
  }
  return true;
}

Tree Tree::adapted(std::vector<Wish> wishes) const {
  make_room_for_finer(wishes);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < size(); ++i) {
    if (wishes[i] == Wish::finer) {
      for (int number = 0; number < 4; ++number) keys.push_back(keys_[i].quarter(number));
    } else if (may_become_one(i, wishes)) {
      keys.push_back(keys_[i].parent());
      i += 3;
    } else {
      keys.push_back(keys_[i]);
    }
  }
  return Tree(std::move(keys));
}

}  // namespace mesh
