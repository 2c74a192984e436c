// SPDX-License-Identifier: BSD-3-Clause
//
// The pure parts: line sets, intervals, boxes, each against the obvious.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "ipv/box_rows.hpp"
#include "ipv/fault_lock.hpp"
#include "ipv/line_set.hpp"

namespace perdure {
namespace {

TEST(LineSet, is_a_set_of_lines) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t bytes = 1 + random() % 20000;
    const std::uint64_t lines = (bytes + 63) / 64;
    LineSet set(bytes);
    std::set<std::uint64_t> model;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t begin = random() % bytes;
      const std::uint64_t end = begin + random() % (bytes - begin + 1);
      if (random() % 3 != 0) {
        set.add({begin, end});
        for (std::uint64_t b = begin; b < end; ++b) model.insert(b / 64);
      } else {
        set.remove({begin, end});
        for (std::uint64_t l = 0; l < lines; ++l) {
          if (l * 64 >= begin && (l + 1) * 64 <= end) model.erase(l);
        }
      }
    }
    std::set<std::uint64_t> found;
    std::uint64_t last_end = ~std::uint64_t{0};
    const std::uint64_t from = random() % bytes;
    set.for_each_run({from, bytes}, [&](ByteRange run) {
      EXPECT_NE(run.begin, last_end) << "neighbours are joined";
      last_end = run.end;
      for (std::uint64_t b = run.begin; b < run.end; ++b) found.insert(b);
    });
    for (std::uint64_t b = 0; b < bytes; ++b) {
      ASSERT_EQ(found.contains(b), b >= from && model.contains(b / 64)) << "byte " << b;
    }
    set.for_each_run(
        {from, bytes},
        [&](ByteRange run) {
          for (std::uint64_t b = run.begin; b < run.end; ++b) {
            EXPECT_TRUE(found.insert(b).second) << "byte " << b;
          }
        },
        false);
    EXPECT_EQ(found.size(), bytes - from) << "what is in no line of it is the rest";
    EXPECT_EQ(set.empty(), model.empty());
  }
}

// Of many spans, some of which have all lines or none.
TEST(LineSet, is_a_set_of_many_lines) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t lines = 1 + random() % 30000;
    LineSet set(64 * lines);
    LineSet other(64 * lines);
    std::vector<bool> model(lines);
    std::vector<bool> other_model(lines);
    for (int i = 0; i < 60; ++i) {
      // Often where spans begin and end.
      std::uint64_t begin = random() % (lines + 1);
      std::uint64_t end = random() % (lines + 1);
      if (random() % 2 != 0) begin = begin / 4096 * 4096;
      if (random() % 2 != 0) end = std::min(lines, (end + 4095) / 4096 * 4096);
      if (begin > end) std::swap(begin, end);
      const bool member = random() % 2 != 0;
      switch (random() % 8) {
        case 0:
          set.take(other);
          model.swap(other_model);
          break;
        case 1:
          set.add(other);
          for (std::uint64_t l = 0; l < lines; ++l) model[l] = model[l] || other_model[l];
          break;
        case 2:
          if (random() % 4 != 0) break;
          if (member) {
            set.add_all();
          } else {
            set.clear();
          }
          model.assign(lines, member);
          break;
        default:
          if (member) {
            set.add({64 * begin, 64 * end});
          } else {
            set.remove({64 * begin, 64 * end});
          }
          std::fill(model.begin() + static_cast<std::ptrdiff_t>(begin),
                    model.begin() + static_cast<std::ptrdiff_t>(end), member);
      }
      const std::uint64_t from = random() % lines;
      const bool wanted = random() % 2 != 0;
      std::vector<bool> found(lines, !wanted);
      std::fill_n(found.begin(), from, false);
      set.for_each_run(
          {64 * from, 64 * lines},
          [&](ByteRange run) {
            for (std::uint64_t l = run.begin / 64; l < run.end / 64; ++l) found[l] = wanted;
          },
          wanted);
      std::vector<bool> expected(model);
      std::fill_n(expected.begin(), from, false);
      ASSERT_EQ(found, expected) << "from line " << from << " on";
      ASSERT_EQ(set.empty(), std::find(model.begin(), model.end(), true) == model.end());
    }
  }
}

using Sizes = std::vector<std::size_t>;

perdure_ipv_box box_of(const Sizes& counts, const Sizes& strides) {
  perdure_ipv_box box{};
  box.dimensions = counts.size();
  std::ranges::copy(counts, box.counts);
  std::ranges::copy(strides, box.strides);
  return box;
}

TEST(BoxRows, are_the_bytes_of_the_box_in_order) {
  const BoxRows rows(100, box_of({8, 3, 2}, {1, 16, 64}));
  ASSERT_TRUE(rows.valid());
  std::vector<std::uint64_t> begins;
  rows.for_each([&](ByteRange row) {
    EXPECT_EQ(row.end - row.begin, 8U);
    begins.push_back(row.begin);
  });
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{100, 116, 132, 164, 180, 196}));
  EXPECT_EQ(rows.hull(), (ByteRange{100, 204}));
  EXPECT_EQ(rows.total_bytes(), 48U);
}

TEST(BoxRows, without_gaps_are_one_row_where_they_join) {
  const perdure_ipv_box box = box_of({8, 4, 5}, {1, 8, 32});
  std::vector<ByteRange> joined, single;
  BoxRows(0, box).for_each([&](ByteRange row) { joined.push_back(row); });
  BoxRows(0, box, BoxRows::Joins::no).for_each([&](ByteRange row) { single.push_back(row); });
  EXPECT_EQ(joined, (std::vector<ByteRange>{{0, 160}}));
  ASSERT_EQ(single.size(), 20U);
  EXPECT_EQ(single[7], (ByteRange{56, 64}));
}

TEST(BoxRows, that_are_none_are_told) {
  EXPECT_FALSE(BoxRows(0, box_of({8, 4}, {1, 7})).valid());
  EXPECT_FALSE(BoxRows(0, box_of({8, 4}, {2, 64})).valid());
  EXPECT_FALSE(BoxRows(0, box_of({8, 4}, {1, ~std::size_t{0} / 2})).valid());
  EXPECT_FALSE(BoxRows(0, box_of({}, {})).valid());
  perdure_ipv_box five = box_of({8, 4}, {1, 64});
  five.dimensions = 5;
  EXPECT_FALSE(BoxRows(0, five).valid());
  EXPECT_TRUE(BoxRows(0, box_of({8, 0}, {1, 8})).empty());
}

// Two that are not favoured, and the one that is, count without atomics.
TEST(FaultLock, lets_one_thread_in) {
  FaultLock lock;
  lock.favour_this_thread();
  std::uint64_t counted = 0;
  const auto count = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::lock_guard<FaultLock> held(lock);
      counted = counted + 1;
    }
  };
  std::atomic<bool> done{false};
  std::thread others[] = {std::thread(count, 20000), std::thread(count, 20000)};
  std::uint64_t own = 0;
  std::thread waiter([&] {
    for (std::thread& other : others) other.join();
    done = true;
  });
  while (!done) {
    count(100);
    own += 100;
  }
  waiter.join();
  EXPECT_EQ(counted, own + 2 * 20000);
}

}  // namespace
}  // namespace perdure
