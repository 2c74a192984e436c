// SPDX-License-Identifier: BSD-3-Clause
//
// The cache model's parts against slow ones that are obvious. Seed: PERDURE_TEST_SEED.
#include <gtest/gtest.h>

#include <cstdlib>
#include <list>
#include <map>
#include <random>
#include <string>

#include "line_cache.hpp"
#include "page_map.hpp"
#include "test_seed.hpp"

namespace perdure::cache_model {
namespace {

// Each set is a list, the newest line first.
class SlowCache {
 public:
  SlowCache(std::uint64_t sets, std::uint64_t ways) : sets_(sets), ways_(ways) {}
  bool touch(std::uint64_t line) {
    const bool hit = evict(line);
    auto& set = lines_[line % sets_];
    set.push_front(line);
    if (set.size() > ways_) set.pop_back();
    return hit;
  }
  bool evict(std::uint64_t line) { return lines_[line % sets_].remove(line) != 0; }

 private:
  std::uint64_t sets_;
  std::uint64_t ways_;
  std::map<std::uint64_t, std::list<std::uint64_t>> lines_;
};

TEST(LineCache, hits_and_misses_as_a_list_of_each_set_does) {
  auto random = std::mt19937_64(test_seed());
  for (const std::uint64_t ways : {1U, 2U, 3U, 8U, 20U}) {
    const std::uint64_t sets = std::uint64_t{1} << random() % 4U;
    LineCache cache(sets * ways * 64, ways);
    SlowCache slow(sets, ways);
    std::uint64_t hits = 0;
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t line = random() % (2 * sets * ways);
      if (random() % 16 == 0) {
        cache.evict(line);
        slow.evict(line);
        continue;
      }
      const bool hit = slow.touch(line);
      hits += hit ? 1U : 0U;
      ASSERT_EQ(cache.touch(line), hit) << "access " << i << ", " << ways << " ways";
    }
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
