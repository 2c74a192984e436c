// SPDX-License-Identifier: BSD-3-Clause
//
// The policies once more, as plainly as their papers say them, on maps and lists: what the tests
// compare the real ones with. Slow, and independent of them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/counters.hpp"
#include "trace/record.hpp"

namespace perdure::sim {

// A machine: where each page is, and whether it is dirty.
struct PlainMemory {
  std::uint64_t dram = 0, mram = 0;
  bool starts_dirty = true;
  std::map<std::uint32_t, std::pair<Place, bool>> in = {};
  std::set<std::uint32_t> known = {};
  Counters counters = {};

  bool has(std::uint32_t page) const { return in.count(page) != 0; }
  std::uint64_t used(Place place) const {
    return static_cast<std::uint64_t>(
        std::count_if(in.begin(), in.end(), [&](auto& e) { return e.second.first == place; }));
  }
  std::uint64_t free(Place place) const {
    return (place == Place::dram ? dram : mram) - used(place);
  }
  bool full() const { return in.size() == dram + mram; }
  Place free_place() const { return free(Place::mram) != 0 ? Place::mram : Place::dram; }

  Place out(std::uint32_t page) {
    const auto [place, dirty] = in.at(page);
    in.erase(page);
    ++(dirty ? counters[place].page_outs : counters[place].clean_evictions);
    return place;
  }
  void come(std::uint32_t page, Place place) {
    const bool is_new = known.insert(page).second;
    ++(is_new ? counters[place].first_touches : counters[place].page_ins);
    in[page] = {place, is_new && starts_dirty};
  }
  void touch(const trace::Record& record) {
    auto& [place, dirty] = in.at(record.page);
    counters[place].reads += record.reads;
    counters[place].writes += record.writes;
    dirty |= record.writes != 0;
  }
};

// Pages, the newest first.
struct PlainList {
  std::vector<std::uint32_t> pages = {};
  bool has(std::uint32_t page) const {
    return std::find(pages.begin(), pages.end(), page) != pages.end();
  }
  void remove(std::uint32_t page) { std::erase(pages, page); }
  void push(std::uint32_t page) { pages.insert(pages.begin(), page); }
  std::uint32_t pop() {
    const std::uint32_t page = pages.back();
    pages.pop_back();
    return page;
  }
  std::size_t size() const { return pages.size(); }
};

using Records = std::vector<trace::Record>;

// Both lists: order of arrival (fifo), or of last use (lru).
inline Counters plain_queue(const Records& records, PlainMemory memory, bool by_use) {
  PlainList list;
  for (const auto& record : records) {
    if (!memory.has(record.page)) {
      const Place place = memory.full() ? memory.out(list.pop()) : memory.free_place();
      memory.come(record.page, place);
      list.push(record.page);
    } else if (by_use) {
      list.remove(record.page);
      list.push(record.page);
    }
    memory.touch(record);
  }
  return memory.counters;
}

inline Counters plain_lru(const Records& r, PlainMemory m) {
  return plain_queue(r, m, true);
}
inline Counters plain_fifo(const Records& r, PlainMemory m) {
  return plain_queue(r, m, false);
}

// A circle of frames and a hand.
inline Counters plain_clock(const Records& records, PlainMemory memory) {
  std::vector<std::pair<std::uint32_t, bool>> circle;
  std::size_t hand = 0;
  for (const auto& record : records) {
    const auto at =
        std::find_if(circle.begin(), circle.end(), [&](auto& e) { return e.first == record.page; });
    if (at != circle.end()) {
      at->second = true;
    } else if (!memory.full()) {
      memory.come(record.page, memory.free_place());
      circle.emplace_back(record.page, true);
    } else {
      for (; circle[hand].second; hand = (hand + 1) % circle.size()) circle[hand].second = false;
      memory.come(record.page, memory.out(circle[hand].first));
      circle[hand] = {record.page, true};
      hand = (hand + 1) % circle.size();
    }
    memory.touch(record);
  }
  return memory.counters;
}

inline Counters plain_two_q(const Records& records, PlainMemory memory) {
  const std::uint64_t frames = memory.dram + memory.mram;
  const std::uint64_t in_most = std::max<std::uint64_t>(1, frames / 4);
  const std::uint64_t out_most = std::max<std::uint64_t>(1, frames / 2);
  PlainList in, out, main;
  for (const auto& record : records) {
    const std::uint32_t page = record.page;
    if (main.has(page)) {
      main.remove(page);
      main.push(page);
    } else if (!in.has(page)) {
      const bool again = out.has(page);
      out.remove(page);
      Place place = memory.free_place();
      if (memory.full() && (in.size() > in_most || main.size() == 0)) {
        const std::uint32_t victim = in.pop();
        out.push(victim);
        if (out.size() > out_most) out.pop();
        place = memory.out(victim);
      } else if (memory.full()) {
        place = memory.out(main.pop());
      }
      memory.come(page, place);
      (again ? main : in).push(page);
    }
    memory.touch(record);
  }
  return memory.counters;
}

// Figure 4 of the paper, line by line.
inline Counters plain_arc(const Records& records, PlainMemory memory) {
  const std::size_t c = memory.dram + memory.mram;
  std::size_t p = 0;
  PlainList t1, t2, b1, b2;
  Place place = Place::dram;
  const auto replace = [&](bool in_b2) {
    if (t1.size() >= 1 && ((in_b2 && t1.size() == p) || t1.size() > p)) {
      b1.push(t1.pages.back());
      place = memory.out(t1.pop());
    } else {
      b2.push(t2.pages.back());
      place = memory.out(t2.pop());
    }
  };
  for (const auto& record : records) {
    const std::uint32_t x = record.page;
    if (t1.has(x) || t2.has(x)) {
      t1.remove(x);
      t2.remove(x);
      t2.push(x);
    } else if (b1.has(x)) {
      p = std::min(c, p + std::max<std::size_t>(1, b2.size() / b1.size()));
      b1.remove(x);
      replace(false);
      memory.come(x, place);
      t2.push(x);
    } else if (b2.has(x)) {
      const std::size_t step = std::max<std::size_t>(1, b1.size() / b2.size());
      p = p > step ? p - step : 0;
      b2.remove(x);
      replace(true);
      memory.come(x, place);
      t2.push(x);
    } else {
      place = memory.free_place();
      if (t1.size() + b1.size() == c && t1.size() == c) {
        place = memory.out(t1.pop());
      } else if (t1.size() + b1.size() == c) {
        b1.pop();
        if (memory.full()) replace(false);
      } else if (t1.size() + t2.size() + b1.size() + b2.size() >= c) {
        if (t1.size() + t2.size() + b1.size() + b2.size() == 2 * c) b2.pop();
        if (memory.full()) replace(false);
      }
      memory.come(x, place);
      t1.push(x);
    }
    memory.touch(record);
  }
  return memory.counters;
}

// The hottest pages by accesses; of equals the first.
inline std::set<std::uint32_t> plain_hot(const Records& records, std::uint64_t frames) {
  std::map<std::uint32_t, std::uint64_t> counts;
  for (const auto& record : records) counts[record.page] += record.reads + record.writes;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  for (const auto& [page, count] : counts) order.emplace_back(~count, page);
  std::sort(order.begin(), order.end());
  std::set<std::uint32_t> hot;
  for (std::size_t i = 0; i < std::min<std::size_t>(frames, order.size()); ++i) {
    hot.insert(order[i].second);
  }
  return hot;
}

inline Counters plain_mram_fixed(const Records& records, PlainMemory memory) {
  const auto hot = plain_hot(records, memory.mram);
  PlainList list;
  for (const auto& record : records) {
    const bool is_hot = hot.count(record.page) != 0;
    if (!memory.has(record.page)) {
      if (!is_hot && memory.free(Place::dram) == 0) memory.out(list.pop());
      memory.come(record.page, is_hot ? Place::mram : Place::dram);
    }
    if (!is_hot) {
      list.remove(record.page);
      list.push(record.page);
    }
    memory.touch(record);
  }
  return memory.counters;
}

struct PlainLowPower {
  double alpha = 0.9;
  bool once = false, oldest = false;
};

// One list of all pages; who may be chosen is looked for in it.
inline Counters plain_low_power(const Records& records, PlainMemory memory,
                                const PlainLowPower& options = {}) {
  const auto hot = plain_hot(records, memory.mram);
  const double threshold = options.alpha * static_cast<double>(memory.mram) /
                           static_cast<double>(memory.mram + memory.dram);
  PlainList list;
  bool was_unpinned = false;
  const auto is_pinned = [&](std::uint32_t page) {
    return hot.count(page) != 0 && memory.in.at(page).first == Place::mram;
  };
  const auto evict_last = [&](auto may_go) -> std::optional<Place> {
    for (auto page = list.pages.rbegin(); page != list.pages.rend(); ++page) {
      if (!may_go(*page)) continue;
      const std::uint32_t victim = *page;
      list.remove(victim);
      return memory.out(victim);
    }
    return std::nullopt;
  };
  const auto find_frame = [&](bool is_hot) -> Place {
    if (is_hot && memory.free(Place::mram) != 0) return Place::mram;
    if (!is_hot && memory.free(Place::dram) != 0) return Place::dram;
    const auto& c = memory.counters;
    const auto mram = static_cast<double>(c[Place::mram].reads + c[Place::mram].writes);
    const bool pins = c.accesses() == 0 || (mram / static_cast<double>(c.accesses()) >= threshold &&
                                            !(options.once && was_unpinned));
    was_unpinned |= !pins;
    if (pins) {
      const auto guest = [&](std::uint32_t page) {
        return !is_pinned(page) && memory.in.at(page).first == Place::mram;
      };
      if (is_hot) {
        if (const auto place = evict_last(guest)) return *place;
        if (memory.free(Place::dram) != 0) return Place::dram;
      }
      if (const auto place = evict_last([&](auto page) { return !is_pinned(page); })) return *place;
    }
    if (!memory.full()) return memory.free_place();
    if (options.oldest) {
      if (const auto place = evict_last(is_pinned)) return *place;
    }
    return *evict_last([](auto) { return true; });
  };
  for (const auto& record : records) {
    if (!memory.has(record.page)) {
      memory.come(record.page, find_frame(hot.count(record.page) != 0));
    }
    list.remove(record.page);
    list.push(record.page);
    memory.touch(record);
  }
  return memory.counters;
}

inline std::uint64_t plain_opt_faults(const Records& records, std::size_t frames) {
  std::set<std::uint32_t> in;
  std::uint64_t faults = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (in.count(records[i].page) != 0) continue;
    ++faults;
    if (in.size() == frames) {
      std::size_t farthest = 0;
      std::uint32_t victim = 0;
      for (const std::uint32_t page : in) {
        std::size_t next = i;
        while (next < records.size() && records[next].page != page) ++next;
        if (next >= farthest) {
          farthest = next;
          victim = page;
        }
      }
      in.erase(victim);
    }
    in.insert(records[i].page);
  }
  return faults;
}

}  // namespace perdure::sim
