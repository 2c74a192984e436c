// SPDX-License-Identifier: BSD-3-Clause
//
// The cache filter against a cache of lists, in both modes, for all shapes; and what it refuses.
#include "trace/cache_filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <utility>

namespace perdure::trace {
namespace {

using Report = std::pair<std::uint64_t, bool>;

// Sets of lines, the most recently used one first.
class ListCache {
 public:
  ListCache(const CacheShape& shape, FilterMode mode)
      : shape_(shape), mode_(mode), sets_(shape.size_bytes / shape.line_bytes / shape.ways) {}

  void touch(std::uint64_t line, bool is_write) {
    auto& set = sets_[line % sets_.size()];
    auto found = std::find_if(set.begin(), set.end(), [&](auto& e) { return e.first == line; });
    bool dirty = is_write;
    if (found != set.end()) {
      dirty |= found->second;
      set.erase(found);
    } else {
      reports.emplace_back(line * shape_.line_bytes, mode_ == FilterMode::paper && is_write);
      if (set.size() == shape_.ways) {
        if (mode_ == FilterMode::modern && set.back().second) {
          reports.emplace_back(set.back().first * shape_.line_bytes, true);
        }
        set.pop_back();
      }
    }
    set.emplace_front(line, dirty);
  }
  std::size_t dirty_lines() const {
    std::size_t count = 0;
    for (const auto& set : sets_) {
      for (const auto& [line, dirty] : set) count += dirty ? 1 : 0;
    }
    return count;
  }
  std::vector<Report> reports;

 private:
  CacheShape shape_;
  FilterMode mode_;
  std::vector<std::list<std::pair<std::uint64_t, bool>>> sets_;
};

void keep(void* context, std::uint64_t address, bool is_write) {
  static_cast<std::vector<Report>*>(context)->emplace_back(address, is_write);
}

void compare(const CacheShape& shape, FilterMode mode, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Report> reports;
  CacheFilter filter(shape, mode, keep, &reports);
  ListCache cache(shape, mode);
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t address = random() % (shape.size_bytes * 3);
    const std::uint64_t bytes = 1 + random() % (random() % 50 == 0 ? 300 : 8);
    const bool is_write = random() % 3 == 0;
    filter.access(address, bytes, is_write);
    const std::uint64_t last = (address + bytes - 1) / shape.line_bytes;
    for (auto line = address / shape.line_bytes; line <= last; ++line) cache.touch(line, is_write);
  }
  EXPECT_EQ(reports, cache.reports);
  reports.clear();
  filter.write_back();
  EXPECT_EQ(reports.size(), mode == FilterMode::modern ? cache.dirty_lines() : 0);
  reports.clear();
  filter.write_back();
  EXPECT_TRUE(reports.empty()) << "lines were still dirty";
}

TEST(CacheFilter, does_what_a_cache_of_lists_does) {
  std::uint64_t seed = 1;
  for (const FilterMode mode : {FilterMode::paper, FilterMode::modern}) {
    for (const std::uint32_t ways : {1U, 2U, 3U, 8U}) {
      for (const std::uint64_t sets : {1U, 4U, 64U}) {
        for (const std::uint32_t line : {16U, 64U})
          compare({line * ways * sets, line, ways}, mode, seed++);
      }
    }
  }
}

TEST(CacheFilter, reports_every_line_without_a_cache) {
  std::vector<Report> reports;
  CacheFilter filter({}, FilterMode::none, keep, &reports);
  filter.access(60, 8, true);
  filter.access(0, 1, false);
  filter.access(0, 1, false);
  EXPECT_EQ(reports, (std::vector<Report>{{0, true}, {64, true}, {0, false}, {0, false}}));
}

TEST(CacheFilter, gives_a_miss_the_type_of_its_access_in_mode_paper) {
  std::vector<Report> reports;
  CacheFilter filter({}, FilterMode::paper, keep, &reports);
  const std::uint64_t other = std::uint64_t{1} << 20U;  // in the same set
  filter.access(8, 8, true);
  filter.access(16, 8, false);
  filter.access(other, 8, false);
  filter.access(8, 8, false);
  EXPECT_EQ(reports, (std::vector<Report>{{0, true}, {other, false}, {0, false}}));
  EXPECT_EQ(filter.misses(), 3U);
}

TEST(CacheFilter, writes_a_dirty_victim_back_in_mode_modern) {
  std::vector<Report> reports;
  CacheFilter filter({}, FilterMode::modern, keep, &reports);
  const std::uint64_t other = std::uint64_t{1} << 20U;
  filter.access(8, 8, true);
  filter.access(other, 8, false);
  filter.access(8, 8, false);
  EXPECT_EQ(reports, (std::vector<Report>{{0, false}, {other, false}, {0, true}, {0, false}}));
}

TEST(CacheFilter, refuses_shapes_that_can_not_be) {
  EXPECT_TRUE(check_shape({}).ok());
  EXPECT_TRUE(check_shape({48 << 10U, 64, 12}).ok());
  const CacheShape wrong[] = {{0, 64, 1},        {1 << 20U, 0, 1},  {1 << 20U, 48, 1},
                              {1 << 20U, 64, 0}, {1 << 20U, 64, 3}, {100, 64, 1},
                              {32, 64, 1},       {1 << 20U, 4, 1}};
  for (const CacheShape& shape : wrong) {
    EXPECT_EQ(check_shape(shape).code(), Code::invalid_argument) << shape.size_bytes;
  }
}

}  // namespace
}  // namespace perdure::trace
