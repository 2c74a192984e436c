// SPDX-License-Identifier: BSD-3-Clause
#include "parts/ownership.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace perdure {
namespace {

constexpr std::uint64_t block = 16;

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (std::uint32_t nodes = 1; nodes <= 5; ++nodes) {
    for (const std::uint64_t bytes : {0U, 1U, 15U, 16U, 17U, 100U, 333U}) {
      all.push_back(make_layout(LayoutKind::cyclic, nodes, block, bytes));
      all.push_back(make_layout(LayoutKind::parts, nodes, block, bytes));
    }
  }
  return all;
}

// The oracle: the blocks are dealt one after the other, as the header says it.
Place dealt(const Layout& layout, std::uint64_t wanted) {
  std::vector<std::uint64_t> kept(layout.nodes, 0);
  for (std::uint64_t b = 0;; ++b) {
    const std::uint64_t in_parts = layout.part_blocks * layout.nodes;
    const std::uint64_t node =
        b < in_parts ? b / layout.part_blocks : (b - in_parts) % layout.nodes;
    const Place place{static_cast<std::uint32_t>(node), kept[node]++};
    if (b == wanted) return place;
  }
}

TEST(Ownership, deals_every_block_as_the_header_says_and_back) {
  for (const Layout& layout : layouts()) {
    for (std::uint64_t b = 0; b < 60; ++b) {
      EXPECT_EQ(place_of_block(layout, b), dealt(layout, b));
      EXPECT_EQ(file_block_of(layout, place_of_block(layout, b)), b);
      EXPECT_EQ(place_of(layout, b * block + 7), place_of_block(layout, b));
    }
  }
}

TEST(Ownership, a_part_has_just_the_blocks_that_a_file_of_each_size_needs) {
  for (const Layout& layout : layouts()) {
    for (std::uint64_t bytes = 0; bytes < 700; bytes += 3) {
      std::vector<std::uint64_t> needed(layout.nodes, 0);
      for (std::uint64_t b = 0; b * block < bytes; ++b) {
        const Place place = place_of_block(layout, b);
        needed[place.node] = std::max(needed[place.node], place.block + 1);
      }
      for (std::uint32_t node = 0; node < layout.nodes; ++node) {
        EXPECT_EQ(part_blocks_for(layout, node, bytes), needed[node]);
      }
    }
  }
}

TEST(Ownership, equal_parts_of_a_size_that_the_nodes_do_not_divide_leave_no_byte_without_owner) {
  const Layout layout = make_layout(LayoutKind::parts, 3, block, 1001);
  std::set<std::pair<std::uint32_t, std::uint64_t>> places;
  for (std::uint64_t offset = 0; offset < 1001; offset += block) {
    const Place place = place_of(layout, offset);
    EXPECT_LT(place.node, 3U);
    EXPECT_TRUE(places.insert({place.node, place.block}).second);
  }
}

TEST(Ownership, a_run_ends_with_the_block_unless_there_is_one_node) {
  const Layout two = make_layout(LayoutKind::cyclic, 2, block, 0);
  EXPECT_EQ(run_on_node(two, 10, 100), 6U);
  EXPECT_EQ(run_on_node(two, 16, 5), 5U);
  EXPECT_EQ(run_on_node(make_layout(LayoutKind::cyclic, 1, block, 0), 10, 100), 100U);
}

}  // namespace
}  // namespace perdure
