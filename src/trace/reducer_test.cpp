// SPDX-License-Identifier: BSD-3-Clause
//
// The reducer against the definition (of three references, the middle one), and the reduced trace
// against the whole one: faults, write-backs, dirty pages and accesses, under LRU and under OPT.
#include "trace/reducer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

#include "trace/testing/random_trace.hpp"

namespace perdure::trace {
namespace {

std::vector<Record> reduced(const std::vector<Record>& records, std::uint32_t floor_pages) {
  std::vector<Record> out;
  Reducer reducer(floor_pages, out);
  for (const Record& record : records) reducer.append(record);
  reducer.flush();
  return out;
}

struct Fate {
  std::uint64_t faults = 0, write_backs = 0, reads = 0, writes = 0, dirty = 0;
  bool operator==(const Fate&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Fate& fate) {
  return out << fate.faults << " faults, " << fate.write_backs << " write-backs, " << fate.reads
             << " reads, " << fate.writes << " writes, " << fate.dirty << " dirty at the end";
}

std::size_t next_use(const std::vector<Record>& records, std::size_t from, std::uint32_t page) {
  for (; from < records.size() && records[from].page != page; ++from) {
  }
  return from;
}

// A list of frames, the most recently used first; the victim is the last, or that of OPT.
Fate fate_of(const std::vector<Record>& records, std::size_t frames, bool opt) {
  Fate fate;
  std::list<std::pair<std::uint32_t, bool>> list;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    auto found = std::find_if(list.begin(), list.end(), [&](auto& e) { return e.first == r.page; });
    bool dirty = r.writes != 0;
    if (found == list.end()) {
      ++fate.faults;
      if (list.size() == frames) {
        auto victim = std::prev(list.end());
        std::size_t farthest = 0;
        for (auto e = list.begin(); opt && e != list.end(); ++e) {
          const std::size_t next = next_use(records, i, e->first);
          if (next > farthest) {
            farthest = next;
            victim = e;
          }
        }
        fate.write_backs += victim->second ? 1U : 0U;
        list.erase(victim);
      }
    } else {
      dirty |= found->second;
      list.erase(found);
    }
    list.emplace_front(r.page, dirty);
    fate.reads += r.reads;
    fate.writes += r.writes;
  }
  for (const auto& entry : list) fate.dirty += entry.second ? 1U : 0U;
  return fate;
}

// What stays, by the definition: drops are tried in the order of time, against what is kept so far.
std::vector<Record> by_definition(const std::vector<Record>& records, std::uint32_t floor_pages) {
  struct Kept {
    std::size_t at;
    Record record;
  };
  std::vector<Kept> merged;  // runs of one page are one reference
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!merged.empty() && merged.back().record.page == records[i].page) {
      merged.back().record.reads += records[i].reads;
      merged.back().record.writes += records[i].writes;
    } else {
      merged.push_back({i, records[i]});
    }
  }
  std::map<std::uint32_t, std::vector<Kept>> kept;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    auto& of_page = kept[merged[i].record.page];
    if (of_page.size() >= 2) {
      std::set<std::uint32_t> between;
      for (std::size_t j = 0; j < i; ++j) {
        if (merged[j].at > of_page[of_page.size() - 2].at) between.insert(merged[j].record.page);
      }
      between.erase(merged[i].record.page);
      if (between.size() < floor_pages) {
        of_page[of_page.size() - 2].record.reads += of_page.back().record.reads;
        of_page[of_page.size() - 2].record.writes += of_page.back().record.writes;
        of_page.pop_back();
      }
    }
    of_page.push_back(merged[i]);
  }
  std::vector<Kept> all;
  for (const auto& [page, of_page] : kept) all.insert(all.end(), of_page.begin(), of_page.end());
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.at < b.at; });
  std::vector<Record> out;
  for (const Kept& one : all) out.push_back(one.record);
  return out;
}

TEST(Reducer, drops_what_the_definition_drops) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto pages = static_cast<std::uint32_t>(2 + seed % 19);
    const auto records = dense_records(random_accesses(seed, 200, pages));
    const auto floor = static_cast<std::uint32_t>(1 + seed % 7);
    ASSERT_EQ(reduced(records, floor), by_definition(records, floor));
  }
}

TEST(Reducer, changes_no_fate_with_as_many_frames_as_its_floor_and_more) {
  std::uint64_t before = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto pages = static_cast<std::uint32_t>(2 + seed % 23);
    const auto records = dense_records(random_accesses(seed, 300, pages));
    const auto floor = static_cast<std::uint32_t>(1 + seed % 9);
    const auto fewer = reduced(records, floor);
    before += records.size();
    after += fewer.size();
    for (std::size_t frames = floor; frames <= pages + 1; ++frames) {
      ASSERT_EQ(fate_of(fewer, frames, false), fate_of(records, frames, false)) << frames;
      const Fate whole = fate_of(records, frames, true), part = fate_of(fewer, frames, true);
      ASSERT_EQ(part.faults, whole.faults) << frames;
      ASSERT_EQ(part.reads + part.writes, whole.reads + whole.writes);
    }
  }
  EXPECT_LT(after * 3, before * 2) << "hardly anything was left out";
}

TEST(Reducer, keeps_first_touches_in_order) {
  const auto fewer = reduced(dense_records(random_accesses(5, 2000, 60)), 8);
  std::uint32_t pages = 0;
  for (const Record& record : fewer) {
    ASSERT_LE(record.page, pages);
    pages += record.page == pages ? 1 : 0;
  }
  EXPECT_EQ(pages, 60U);
}

TEST(Reducer, makes_more_records_where_counts_would_overflow) {
  constexpr std::uint32_t most = ~std::uint32_t{0};
  const auto fewer = reduced({{0, most, 0}, {0, 2, 0}, {0, 0, most}, {1, 1, 0}, {0, 5, 5}}, 4);
  std::uint64_t reads = 0, writes = 0;
  for (const Record& record : fewer) {
    reads += record.reads;
    writes += record.writes;
  }
  EXPECT_EQ(reads, std::uint64_t{most} + 8);
  EXPECT_EQ(writes, std::uint64_t{most} + 5);
}

}  // namespace
}  // namespace perdure::trace
