// SPDX-License-Identifier: BSD-3-Clause
//
// Views and plans of accesses against lists of every single byte.
#include "mpiio/file_view.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "mpi/grid.hpp"
#include "mpi/testing/draw_maps.hpp"
#include "mpiio/access_plan.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

// Increasing, as a filetype must be; now and then with nothing between two items.
DatatypeMap draw_filetype(Generator& draw) {
  RunList list;
  std::int64_t end = between(draw, 0, 1) * between(draw, 0, 9);
  for (std::int64_t count = between(draw, 1, 4); count > 0; --count) {
    const std::int64_t bytes = between(draw, 1, 7);
    list.add(end, bytes);
    end += bytes + between(draw, 0, 1) * between(draw, 0, 5);
  }
  return map_of_runs(list, end + between(draw, 0, 1) * between(draw, 0, 6));
}

// In any order, before the address too, and overlapping.
DatatypeMap draw_memory(Generator& draw) {
  if (draw() % 3 == 0) {
    RunList straight;
    const std::int64_t bytes = between(draw, 1, 9);
    straight.add(0, bytes);
    return map_of_runs(straight, bytes);
  }
  RunList list;
  for (std::int64_t count = between(draw, 1, 4); count > 0; --count) {
    list.add(between(draw, -20, 20), between(draw, 1, 7));
  }
  return map_of_runs(list, between(draw, 0, 40));
}

// Where each byte lies that items carry.
std::vector<std::int64_t> every_byte(const DatatypeMap& map, std::size_t count) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t item = 0; bytes.size() < count; ++item) {
    for (const ByteRun& run : map.runs) {
      for (std::int64_t i = 0; i < run.bytes; ++i) {
        bytes.push_back(item * map.extent_bytes + run.offset + i);
      }
    }
  }
  return bytes;
}

class Views : public testing::Test {
 protected:
  template <typename Check>
  void with_random_views(Check&& check) {
    Generator draw(test_seed());
    for (int round = 0; round < 500 && !HasFailure(); ++round) {
      SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(test_seed()) + " round " +
                   std::to_string(round));
      const DatatypeMap filetype = draw_filetype(draw);
      const FileView view = make_view(between(draw, 0, 1) * between(draw, 0, 30), 1, filetype);
      std::vector<std::int64_t> bytes = every_byte(filetype, 300);
      for (std::int64_t& byte : bytes) byte += view.displacement;
      check(draw, view, bytes);
    }
  }
};

using Bytes = std::vector<std::int64_t>;

TEST_F(Views, every_position_has_its_place_in_the_file) {
  with_random_views([](Generator&, const FileView& view, const Bytes& bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      ASSERT_EQ(view.file_offset(static_cast<std::int64_t>(at)), bytes[at]) << "position " << at;
    }
  });
}

TEST_F(Views, the_end_of_a_file_is_the_first_position_past_it) {
  with_random_views([](Generator&, const FileView& view, const Bytes& bytes) {
    for (std::int64_t size = 0; size <= bytes[250]; ++size) {
      std::int64_t before = 0;
      while (bytes[static_cast<std::size_t>(before)] < size) ++before;
      ASSERT_EQ(view.data_bytes_before(size), before) << "size " << size;
    }
  });
}

TEST_F(Views, pieces_are_all_bytes_in_order_and_joined) {
  with_random_views([](Generator& draw, const FileView& view, const Bytes& bytes) {
    const std::int64_t at = between(draw, 0, 150);
    const std::int64_t count = between(draw, 0, 150);
    Bytes seen;
    std::int64_t pieces = 0;
    EXPECT_TRUE(view.for_each_piece(at, count, [&](std::int64_t offset, std::int64_t length) {
      EXPECT_TRUE(seen.empty() || seen.back() + 1 != offset) << "not joined";
      for (std::int64_t i = 0; i < length; ++i) seen.push_back(offset + i);
      ++pieces;
      return true;
    }));
    EXPECT_EQ(seen, Bytes(bytes.begin() + at, bytes.begin() + at + count));
    std::int64_t calls = 0;
    const bool all = view.for_each_piece(at, count, [&](auto, auto) { return ++calls < 2; });
    EXPECT_EQ(all, pieces < 2);
    EXPECT_EQ(calls, std::min<std::int64_t>(pieces, 2));
  });
}

TEST_F(Views, pairs_match_memory_and_file_byte_by_byte) {
  with_random_views([](Generator& draw, const FileView& view, const Bytes& bytes) {
    const DatatypeMap memory = draw_memory(draw);
    const Bytes places = every_byte(memory, 200);
    const std::int64_t at = between(draw, 0, 100);
    const std::int64_t count = between(draw, 0, 150);
    std::vector<char> base(4000);
    std::vector<std::pair<std::int64_t, std::int64_t>> seen, wanted;
    int calls = 0;
    char* const middle = base.data() + 1000;
    for_each_pair(memory, middle, view, at, count,
                  [&](std::int64_t offset, char* address, std::int64_t length) {
                    for (std::int64_t i = 0; i < length; ++i) {
                      seen.emplace_back(offset + i, address - middle + i);
                    }
                    ++calls;
                  });
    for (std::int64_t i = 0; i < count; ++i) {
      wanted.emplace_back(bytes[static_cast<std::size_t>(at + i)],
                          places[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(seen, wanted);
    if (memory.contiguous && view.contiguous) {
      EXPECT_EQ(calls, count > 0 ? 1 : 0);
    }
  });
}

TEST(View, the_default_view_shows_every_byte) {
  const FileView view;
  EXPECT_EQ(view.file_offset(17), 17);
  EXPECT_EQ(view.data_bytes_before(17), 17);
}

TEST(View, a_filetype_without_bytes_shows_none) {
  const FileView view = make_view(5, 1, DatatypeMap{});
  EXPECT_EQ(view.file_offset(3), 5);
  EXPECT_EQ(view.data_bytes_before(100), 0);
  EXPECT_TRUE(view.for_each_piece(0, 10, [](auto, auto) { return false; }));
  char byte = 0;
  const DatatypeMap nothing;
  EXPECT_TRUE(for_each_pair(nothing, &byte, FileView{}, 0, 9, [](auto, auto, auto) {}));
}

TEST(Grid, distributions_give_every_index_to_one_place) {
  for (const Distribution distribution : {Distribution::block, Distribution::cyclic}) {
    for (std::int64_t length = 1; length < 20; ++length) {
      for (std::int64_t places = 1; places < 5; ++places) {
        std::vector<int> owners(static_cast<std::size_t>(length));
        for (std::int64_t place = 0; place < places; ++place) {
          for (const IndexRun& run : distribute(distribution, length, 0, places, place)) {
            for (std::int64_t i = 0; i < run.count; ++i) {
              ++owners[static_cast<std::size_t>(run.first + i)];
            }
          }
        }
        EXPECT_EQ(owners, std::vector<int>(static_cast<std::size_t>(length), 1));
      }
    }
  }
}

TEST_F(Views, regular_runs_are_the_bytes_that_the_view_shows) {
  int regular = 0;
  with_random_views(
      [&](Generator& draw, const FileView& view, const std::vector<std::int64_t>& all) {
        if (view.run_bytes == 0) return;
        ++regular;
        const std::int64_t at = between(draw, 0, 100);
        const std::int64_t bytes = between(draw, 0, 200);
        std::vector<std::int64_t> seen;
        EXPECT_TRUE(for_each_run(view, at, bytes, [&](const RegularRun& run) {
          for (std::int64_t i = 0; i < run.count * run.bytes; ++i) {
            seen.push_back(run.offset + i / run.bytes * run.stride + i % run.bytes);
          }
          return true;
        }));
        EXPECT_EQ(seen, std::vector<std::int64_t>(all.begin() + at, all.begin() + at + bytes));
      });
  EXPECT_GT(regular, 50);
}

}  // namespace
}  // namespace perdure
