// SPDX-License-Identifier: BSD-3-Clause
//
// Record: what is carried, byte by byte, against a brute-force model of random histories.
#include "ipv_check/record.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace perdure::ipv_check {
namespace {

constexpr std::uintptr_t base = 0x10000;

Site site_at(unsigned line) {
  return {"loop.c", "iterate", line, 1, 0, 0, nullptr, -1, {}};
}

const Tracked& only(const Record& record) {
  EXPECT_EQ(record.tracked().size(), 1U);
  return record.tracked().front();
}

TEST(Record, a_byte_is_carried_if_it_is_read_before_it_is_stored_to_again) {
  Record record;
  Site site = site_at(7);
  record.add_named(base, 24, "u");
  record.store(base, 24, site);  // before the loop: nothing
  for (int i = 0; i < 2; ++i) {
    record.begin_iteration();
    record.load(base + 3, 2, site);  // carried
    record.store(base, 8, site);
    record.load(base, 8, site);
    record.load(base + 16, 8, site);  // read only
  }
  record.end_loop();
  record.finish();
  const Tracked& u = only(record);
  EXPECT_EQ(record.iterations(), 2U);
  EXPECT_EQ(u.totals.carried, 2U);
  EXPECT_EQ(u.totals.rewritten, 6U);
  EXPECT_EQ(u.totals.read_only, 8U);
  EXPECT_EQ(u.totals.stored, 8U);
  EXPECT_EQ(u.kept_max, 16U);
  EXPECT_EQ(u.carried_iteration, 2U);
}

// Longer where it is, then elsewhere, where what lies overlaps nothing of before.
TEST(Record, an_object_that_gets_another_size_or_place_keeps_its_history) {
  Record record;
  Site site = site_at(7);
  record.add_named(base, 16, "u");
  record.begin_iteration();
  record.store(base, 16, site);
  record.resize_named(base, 24, "u");
  record.begin_iteration();
  record.load(base, 8, site);  // carried
  record.store(base, 24, site);
  record.resize_named(base + 4096, 32, "u");
  record.begin_iteration();
  record.load(base + 4096 + 8, 8, site);  // carried
  record.store(base, 24, site);           // somebody else's
  record.end_loop();
  record.finish();
  EXPECT_EQ(only(record).totals.carried, 16U);
  EXPECT_EQ(only(record).totals.stored, 24U);
}

TEST(Record, what_is_read_behind_the_loop_is_told_apart) {
  Record record;
  Site site = site_at(7);
  record.add_named(base, 16, "u");
  for (int i = 0; i < 3; ++i) {
    record.begin_iteration();
    record.store(base, 16, site);
  }
  record.begin_iteration();  // never completed: the loop has ended with its persistence point
  record.load(base, 8, site);
  record.store(base, 16, site);
  record.finish();
  const Tracked& u = only(record);
  EXPECT_EQ(u.totals.carried, 0U);
  EXPECT_EQ(u.totals.after_loop, 8U);
  EXPECT_EQ(u.totals.unread, 8U);
  EXPECT_EQ(u.carried_at, 0U);
  EXPECT_EQ(u.writers.begin()->second.iterations, 3U);
}

TEST(Record, a_block_that_is_freed_and_allocated_again_carries_nothing) {
  Record record;
  Site site = site_at(7);
  const auto nowhere = [] { return std::vector<Frame>(); };
  for (int i = 0; i < 4; ++i) {
    record.begin_iteration();
    record.allocated(base, 64, 1, nowhere);
    record.store(base, 64, site);
    record.load(base, 64, site);
    record.freed(base, 64);
  }
  record.end_loop();
  record.finish();
  EXPECT_EQ(only(record).totals.carried, 0U);
  EXPECT_EQ(only(record).blocks, 4U);
  EXPECT_EQ(only(record).live_bytes_max, 64U);
}

// Two arrays of the test's own, which take turns; `extra` is done in each iteration.
template <typename Extra>
std::vector<Exchange> exchanges_of(int iterations, Extra extra) {
  static std::vector<std::uint64_t> memory[2];
  for (auto& array : memory) array.assign(1024, 1);
  const auto address = [](int which) {
    return reinterpret_cast<std::uintptr_t>(memory[which].data());
  };
  static std::unique_ptr<Record> kept;  // what is returned refers to it
  kept = std::make_unique<Record>();
  Record& record = *kept;
  Site site = site_at(7);
  record.add_named(address(0), 8192, "f");
  record.add_named(address(1), 8192, "g");
  for (int i = 0; i < iterations; ++i) {
    record.begin_iteration();
    record.load(address(i % 2), 8192, site);
    record.store(address(1 - i % 2) + 80, 8000, site);
    extra(record, i, address(i % 2), address(1 - i % 2));
  }
  record.end_loop();
  record.finish();
  return record.pairs();
}

TEST(Record, arrays_that_take_turns_are_a_pair) {
  const auto nothing = [](Record&, int, std::uintptr_t, std::uintptr_t) {};
  const auto pairs = exchanges_of(5, nothing);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].breach, ExchangeBreach::none);
  EXPECT_EQ(pairs[0].after_odd->name, "g");
  EXPECT_EQ(pairs[0].after_even->name, "f");
  EXPECT_EQ(pairs[0].after_odd->totals.alive_after[0], 0U);
  EXPECT_EQ(pairs[0].after_odd->totals.alive_after[1], 8000U);
  EXPECT_TRUE(exchanges_of(3, nothing).empty());
}

TEST(Record, arrays_that_break_the_contract_of_a_pair_are_told_with_the_byte) {
  Site site = site_at(9);
  const auto breach_of = [](const auto& extra) {
    const auto pairs = exchanges_of(8, extra);
    EXPECT_EQ(pairs.size(), 1U);
    return std::pair(pairs.at(0).breach, pairs.at(0).byte);
  };
  using Found = std::pair<ExchangeBreach, std::optional<std::uint64_t>>;
  EXPECT_EQ(breach_of([&](Record& record, int i, std::uintptr_t, std::uintptr_t to) {
              if (i == 4) record.store(to + 8, 8, site);  // only once, of one of them
            }),
            Found(ExchangeBreach::stored, 8));
  EXPECT_EQ(breach_of([&](Record& record, int i, std::uintptr_t, std::uintptr_t to) {
              if (i == 4 || i == 5) record.store(to + 8, 8, site);  // of both
            }),
            Found(ExchangeBreach::stored, std::nullopt));
  EXPECT_EQ(breach_of([&](Record&, int i, std::uintptr_t from, std::uintptr_t) {
              if (i == 0) *reinterpret_cast<std::uint64_t*>(from + 16) = 2;
            }),
            Found(ExchangeBreach::walls, 16));
}

TEST(Record, an_array_that_reads_what_it_overwrites_is_alive_after_all_iterations) {
  static std::vector<std::uint64_t> memory[2];
  for (auto& array : memory) array.assign(1024, 1);
  Record record;
  Site site = site_at(7);
  for (auto& array : memory) {
    record.add_named(reinterpret_cast<std::uintptr_t>(array.data()), 8192, "u");
  }
  for (int i = 0; i < 6; ++i) {
    const auto to = reinterpret_cast<std::uintptr_t>(memory[i % 2].data());
    record.begin_iteration();
    record.load(to + 256, 3, site);  // of the iteration before the last
    record.store(to, 8192, site);
    record.load(to, 8192, site);
  }
  record.end_loop();
  record.finish();
  ASSERT_EQ(record.pairs().size(), 1U);
  EXPECT_EQ(record.pairs()[0].breach, ExchangeBreach::read);
  EXPECT_EQ(record.pairs()[0].byte, 256U);
  EXPECT_EQ(record.tracked().front().totals.alive_after[0], 3U);
  EXPECT_EQ(record.tracked().front().totals.alive_after[1], 3U);
}

TEST(Record, a_block_that_grows_takes_its_history_with_it) {
  Record record;
  Site site = site_at(7);
  const auto nowhere = [] { return std::vector<Frame>(); };
  record.allocated(base, 16, 1, nowhere);
  record.begin_iteration();
  record.store(base, 16, site);
  record.begin_iteration();
  record.allocated(base + 64, 32, 2, nowhere);
  record.moved(base, base + 64, 16);
  record.freed(base, 16);
  record.load(base + 64, 16, site);
  record.end_loop();
  record.finish();
  EXPECT_EQ(record.tracked()[1].totals.carried, 16U);
}

TEST(Record, blocks_from_before_the_loop_have_rows_of_their_own) {
  Record record;
  const auto nowhere = [] { return std::vector<Frame>(); };
  record.allocated(base, 16, 1, nowhere);
  record.allocated(base + 16, 16, 1, nowhere);
  record.begin_iteration();
  record.allocated(base + 32, 16, 1, nowhere);
  record.allocated(base + 48, 16, 1, nowhere);
  ASSERT_EQ(record.tracked().size(), 3U);
  EXPECT_EQ(record.tracked()[1].ordinal, 2U);
  EXPECT_EQ(record.tracked()[2].ordinal, 0U);
  EXPECT_EQ(record.tracked()[2].blocks, 2U);
}

TEST(Record, an_object_cuts_the_block_it_lies_in) {
  Record record;
  Site site = site_at(7);
  const auto nowhere = [] { return std::vector<Frame>(); };
  record.allocated(base, 64, 1, nowhere);
  record.add_named(base + 8, 16, "u");
  record.begin_iteration();
  record.store(base, 64, site);  // across all three
  record.end_loop();
  record.finish();
  EXPECT_EQ(record.tracked()[0].totals.stored, 48U);
  EXPECT_EQ(record.tracked()[1].totals.stored, 16U);
}

TEST(Record, a_writer_that_comes_with_a_later_iteration_is_known_by_it) {
  Record record;
  Site always = site_at(7), late = site_at(8);
  record.add_named(base, 8, "u");
  for (int i = 1; i <= 6; ++i) {
    record.begin_iteration();
    record.store(base, 8, always);
    if (i % 3 == 0) record.store(base, 8, late);
  }
  record.end_loop();
  record.finish();
  const Tracked& u = only(record);
  ASSERT_EQ(u.writers.size(), 2U);
  const Writer& second = u.writers.at(late.number);
  EXPECT_EQ(second.first_iteration, 3U);
  EXPECT_EQ(second.iterations, 2U);
  EXPECT_TRUE(u.last_differs);
  EXPECT_FALSE(u.first_differs);
}

// Bytes one by one, with whole histories.
class Model {
 public:
  void begin() {
    for (auto& [byte, seen] : now_) {
      if (seen.read_first && stored_.count(byte) != 0) carried.insert(byte);
      if (seen.stored && !seen.read_first) rewritten.insert(byte);
      if (seen.read) read.insert(byte);
    }
    for (auto& [byte, seen] : now_) {
      if (seen.stored) stored_.insert(byte);
    }
    now_.clear();
  }
  void load(std::size_t byte) {
    Seen& seen = now_[byte];
    seen.read = true;
    if (!seen.stored) seen.read_first = true;
  }
  void store(std::size_t byte) { now_[byte].stored = true; }
  std::uint64_t plainly_rewritten() const {
    std::uint64_t count = 0;
    for (const std::size_t byte : rewritten) count += carried.count(byte) == 0;
    return count;
  }
  std::uint64_t read_only() const {
    std::uint64_t count = 0;
    for (const std::size_t byte : read) count += stored_.count(byte) == 0;
    return count;
  }
  std::uint64_t stored() const { return stored_.size(); }

  std::set<std::size_t> carried, rewritten, read;

 private:
  struct Seen {
    bool stored = false, read_first = false, read = false;
  };
  std::map<std::size_t, Seen> now_;
  std::set<std::size_t> stored_;
};

void run_history(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr std::size_t bytes = 61;
  const std::uintptr_t begin = base + below(8);
  Record record;
  Model model;
  std::vector<Site> sites(4, site_at(1));
  record.add_named(begin, bytes, "u");
  const std::uint64_t iterations = 1 + below(6);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    record.begin_iteration();
    for (std::uint64_t access = below(12); access > 0; --access) {
      const std::size_t first = below(bytes), count = 1 + below(std::min(bytes - first, 20UL));
      const bool is_store = below(2) == 0;
      Site& site = sites[below(sites.size())];
      is_store ? record.store(begin + first, count, site) : record.load(begin + first, count, site);
      for (std::size_t b = first; b < first + count; ++b) {
        is_store ? model.store(b) : model.load(b);
      }
    }
    model.begin();
  }
  record.end_loop();
  record.finish();
  const ByteTotals& totals = record.tracked().front().totals;
  ASSERT_EQ(totals.carried, model.carried.size()) << "seed " << seed;
  ASSERT_EQ(totals.rewritten, model.plainly_rewritten()) << "seed " << seed;
  ASSERT_EQ(totals.read_only, model.read_only()) << "seed " << seed;
  ASSERT_EQ(totals.stored, model.stored()) << "seed " << seed;
}

TEST(Record, random_histories_are_judged_as_a_model_of_single_bytes_does) {
  const char* given = std::getenv("PERDURE_TEST_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (given != nullptr ? 1 : 20000); ++seed) {
    run_history(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace perdure::ipv_check
