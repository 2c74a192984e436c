// SPDX-License-Identifier: BSD-3-Clause
//
// The cache model's parts against slow ones that are obvious. Seed: PERDURE_TEST_SEED.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cache_levels.hpp"
#include "test_seed.hpp"

namespace perdure::cache_model {
namespace {

// Each set is a list, the newest line first; what is dirty is another set.
class SlowCache {
 public:
  SlowCache(std::uint64_t sets, std::uint64_t ways) : sets_(sets), ways_(ways) {}
  LineCache::Touched touch(std::uint64_t line, bool store) {
    auto& set = lines_[line % sets_];
    const bool hit = set.remove(line) != 0;
    set.push_front(line);
    std::uint64_t put_out = LineCache::empty;
    if (set.size() > ways_) {
      if (dirty_.erase(set.back()) != 0) put_out = set.back();
      set.pop_back();
    }
    if (store) dirty_.insert(line);
    return {hit, put_out};
  }
  bool soil(std::uint64_t line) {
    const auto& set = lines_[line % sets_];
    if (std::find(set.begin(), set.end(), line) == set.end()) return false;
    dirty_.insert(line);
    return true;
  }
  bool clean(std::uint64_t line) { return dirty_.erase(line) != 0; }
  void evict(std::uint64_t line) {
    lines_[line % sets_].remove(line);
    dirty_.erase(line);
  }

 private:
  std::uint64_t sets_;
  std::uint64_t ways_;
  std::map<std::uint64_t, std::list<std::uint64_t>> lines_;
  std::set<std::uint64_t> dirty_;
};

TEST(LineCache, hits_misses_and_puts_out_as_a_list_of_each_set_does) {
  auto random = std::mt19937_64(test_seed());
  for (const std::uint64_t ways : {1U, 2U, 3U, 8U, 20U}) {
    const std::uint64_t sets = std::uint64_t{1} << random() % 4U;
    LineCache cache(sets * ways * 64, ways);
    SlowCache slow(sets, ways);
    std::uint64_t hits = 0, put_out = 0;
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t line = random() % (2 * sets * ways);
      const std::uint64_t kind = random() % 32;
      if (kind == 0) {
        cache.evict(line);
        slow.evict(line);
      } else if (kind == 1) {
        ASSERT_EQ(cache.clean(line), slow.clean(line)) << "access " << i << ", " << ways << " ways";
      } else if (kind == 2) {
        ASSERT_EQ(cache.soil(line), slow.soil(line)) << "access " << i << ", " << ways << " ways";
      } else {
        const LineCache::Touched wanted = slow.touch(line, kind % 3 == 0);
        const LineCache::Touched found = cache.touch(line, kind % 3 == 0);
        hits += wanted.hit ? 1U : 0U;
        put_out += wanted.put_out != LineCache::empty ? 1U : 0U;
        ASSERT_EQ(found.hit, wanted.hit) << "access " << i << ", " << ways << " ways";
        ASSERT_EQ(found.put_out, wanted.put_out) << "access " << i << ", " << ways << " ways";
      }
    }
    EXPECT_GT(put_out, 1000U);
    EXPECT_GT(hits, 1000U);
    EXPECT_LT(hits, 19000U);
  }
}

TEST(LineCache, has_sets_that_are_a_power_of_two) {
  EXPECT_TRUE(LineCache::fits(32 << 10, 8));
  EXPECT_TRUE(LineCache::fits(20 << 20, 20));
  EXPECT_FALSE(LineCache::fits(20 << 20, 16));
  EXPECT_FALSE(LineCache::fits(1000, 8));
  EXPECT_FALSE(LineCache::fits(0, 8));
  EXPECT_FALSE(LineCache::fits(32 << 10, 0));
}

// A first level of 2 lines and a last one of 4; file lines f(i), and others.
class Levels {
 public:
  explicit Levels(std::optional<Shape> front = {}) : levels_({128, 2}, {256, 4}, front) {}
  static std::uint64_t f(std::uint64_t line) {
    return (PageMap::file_memory(0, 0) >> line_shift) + line;
  }
  void load(std::uint64_t line) { levels_.touch(line, false, counts_); }
  void store(std::uint64_t line) { levels_.touch(line, true, counts_); }
  void push_out() {
    for (std::uint64_t other = 1000; other < 1008; ++other) load(other);
  }
  CacheLevels& operator*() { return levels_; }
  std::pair<std::uint64_t, std::uint64_t> moved() const {
    return {levels_.file_lines().loaded, levels_.file_lines().put_out};
  }

 private:
  CacheLevels levels_;
  Counts counts_;
};
using Moved = std::pair<std::uint64_t, std::uint64_t>;

TEST(CacheLevels, count_what_a_file_gives_and_gets_back) {
  Levels levels;
  levels.load(Levels::f(1));
  levels.load(Levels::f(1));
  levels.store(Levels::f(2));
  levels.store(77);  // not of a file
  EXPECT_EQ(levels.moved(), Moved(2, 0));
  levels.push_out();
  EXPECT_EQ(levels.moved(), Moved(2, 1)) << "what was only loaded is not written back";
  levels.push_out();
  EXPECT_EQ(levels.moved(), Moved(2, 1));
}

TEST(CacheLevels, write_back_once_what_stays_in_the_first_level_beyond_the_last) {
  Levels levels;
  levels.store(Levels::f(1));
  for (std::uint64_t other = 1000; other < 1008; ++other) {
    levels.load(other);
    levels.store(Levels::f(1));  // the last level does not see it
  }
  EXPECT_EQ(levels.moved(), Moved(1, 0));
  levels.push_out();
  EXPECT_EQ(levels.moved(), Moved(1, 1));
}

TEST(CacheLevels, do_not_write_back_what_was_flushed_or_stored_past_them) {
  Levels levels;
  levels.store(Levels::f(1));
  levels.store(Levels::f(2));
  (*levels).flush(Levels::f(1), false);
  (*levels).store_past(Levels::f(2));
  levels.push_out();
  EXPECT_EQ(levels.moved(), Moved(2, 0));
  levels.store(Levels::f(1));
  (*levels).flush(Levels::f(1), false);
  levels.store(Levels::f(1));
  levels.push_out();
  EXPECT_EQ(levels.moved(), Moved(3, 1)) << "stored to after the flush";
}

TEST(CacheLevels, count_flushes_of_lines_that_were_written_back_before) {
  Levels levels;
  levels.store(Levels::f(1));
  levels.store(77);
  levels.push_out();
  levels.store(Levels::f(2));
  for (const std::uint64_t line : {Levels::f(1), Levels::f(2), std::uint64_t{77}}) {
    (*levels).flush(line, false);
  }
  EXPECT_EQ(levels.moved(), Moved(2, 1));
  EXPECT_EQ((*levels).file_lines().flushed_clean, 1U) << "the second was dirty";
}

TEST(CacheLevels, with_dram_in_front_ask_a_file_for_what_does_not_fit_there) {
  Levels levels(Shape{8 * 64, 8});
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t line = 0; line < 6; ++line) levels.store(Levels::f(line));
    levels.push_out();
  }
  EXPECT_EQ(levels.moved(), Moved(6, 0)) << "six lines fit";
  for (std::uint64_t line = 0; line < 6; ++line) (*levels).flush(Levels::f(line), true);
  for (std::uint64_t line = 10; line < 18; ++line) levels.load(Levels::f(line));
  EXPECT_EQ(levels.moved(), Moved(6 + 8, 0)) << "flushed there, too";
  for (std::uint64_t line = 0; line < 6; ++line) levels.store(Levels::f(line));
  levels.push_out();
  for (std::uint64_t line = 10; line < 18; ++line) levels.load(Levels::f(line));
  EXPECT_EQ(levels.moved().second, 6U) << "put out of DRAM";
}

TEST(CacheLevels, with_dram_in_front_keep_there_what_was_stored_past_the_processors) {
  Levels levels(Shape{8 * 64, 8});
  for (std::uint64_t line = 0; line < 8; ++line) (*levels).store_past(Levels::f(line));
  (*levels).store_past(77);  // not of a file
  for (std::uint64_t line = 0; line < 8; ++line) levels.load(Levels::f(line));
  EXPECT_EQ(levels.moved(), Moved(0, 0));
  levels.store(Levels::f(0));
  levels.push_out();
  (*levels).store_past(Levels::f(0));
  for (std::uint64_t line = 10; line < 18; ++line) levels.load(Levels::f(line));
  EXPECT_EQ(levels.moved(), Moved(8, 0)) << "it is clean again";
}

TEST(PageMap, shows_at_each_address_what_was_mapped_there_last) {
  auto random = std::mt19937_64(test_seed());
  constexpr std::uint64_t pages = 64;
  PageMap map;
  std::map<std::uint64_t, std::uint64_t> slow;  // page → memory
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t first = random() % pages;
    const std::uint64_t end = first + 1 + random() % (pages - first);
    if (random() % 3 == 0) {
      map.clear(first << 12U, end << 12U);
      for (std::uint64_t page = first; page < end; ++page) slow.erase(page);
    } else {
      const std::uint64_t memory = PageMap::file_memory(random() % 3, random() % 100 << 12U);
      map.show(first << 12U, end << 12U, memory);
      for (std::uint64_t page = first; page < end; ++page) {
        slow[page] = memory + ((page - first) << 12U);
      }
    }
    for (int asked = 0; asked < 8; ++asked) {
      const std::uint64_t address = random() % (pages << 12U);
      const auto found = slow.find(address >> 12U);
      const std::uint64_t wanted =
          found == slow.end() ? address : found->second + (address & 4095U);
      ASSERT_EQ(map.memory_at(address), wanted) << "step " << i;
    }
  }
}

TEST(PageMap, tells_files_and_addresses_apart) {
  PageMap map;
  map.show(0x10000, 0x12000, PageMap::file_memory(0, 0x3000));
  map.show(0x20000, 0x22000, PageMap::file_memory(1, 0x3000));
  map.show(0x30000, 0x31000, PageMap::file_memory(0, 0x4000));
  EXPECT_NE(map.memory_at(0x10000), map.memory_at(0x20000));
  EXPECT_EQ(map.memory_at(0x11008), map.memory_at(0x30008)) << "two views of one page";
  EXPECT_EQ(map.memory_at(0x40008), 0x40008U);
}

}  // namespace
}  // namespace perdure::cache_model
