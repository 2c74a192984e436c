// SPDX-License-Identifier: BSD-3-Clause
//
// Time and energy of counters, to the last nJ, computed by hand from the paging paper's table 2;
// and what is said where a number is not known. Whole traces are in tests/golden.
#include "sim/account.hpp"

#include <gtest/gtest.h>

namespace perdure::sim {
namespace {

Machine paper_machine() {
  Machine machine;
  machine.devices = devices_of_preset("hosogaya2008").take();
  machine.dram_bytes = 64 << 20U;
  machine.mram_bytes = 128 << 20U;
  machine.compute_ns = 1e6;
  return machine;
}

const Term& term(const Cost& cost, const std::string& name) {
  for (const Term& one : cost.terms) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no term " << name;
  return cost.terms.front();
}

TEST(Account, adds_up_every_term_of_the_model) {
  Counters counters;
  counters[Place::dram] = {.reads = 100,
                           .writes = 40,
                           .page_ins = 3,
                           .first_touches = 5,
                           .page_outs = 2,
                           .clean_evictions = 1,
                           .moved_in = 0};
  counters[Place::mram] = {.reads = 1000,
                           .writes = 200,
                           .page_ins = 1,
                           .first_touches = 4,
                           .page_outs = 1,
                           .clean_evictions = 0,
                           .moved_in = 0};
  const Cost cost = cost_of(counters, paper_machine(), 9);
  EXPECT_TRUE(cost.unknown.empty());
  // 140 · 22.5 + 1200 · 15
  EXPECT_DOUBLE_EQ(*cost.memory_ns, 3150.0 + 18000.0);
  // 4 page-ins, 3 page-outs; first touches are new pages
  EXPECT_DOUBLE_EQ(*cost.swap_ns, 4 * 35000.0 + 3 * 64000.0);
  EXPECT_DOUBLE_EQ(*cost.time_ns, 1e6 + 21150.0 + 332000.0);
  const double accesses = 140 * 6.24 + 1000 * 1.36 + 200 * 2.6;
  const double swap = 4 * 7000.0 + 3 * 12800.0;
  const double copies = 64 * (3 * 6.24 + 2 * 6.24 + 1 * 2.6 + 1 * 1.36);
  EXPECT_DOUBLE_EQ(*cost.dynamic_nj, accesses + swap + copies);
  // 1 uW for 1 ns is 1e-6 nJ
  EXPECT_DOUBLE_EQ(*cost.static_nj, 1353150.0 * 1e-6 * (64 * 867.0 + 128 * 469.0));
  EXPECT_DOUBLE_EQ(*cost.energy_nj, *cost.dynamic_nj + *cost.static_nj);
  EXPECT_DOUBLE_EQ(*term(cost, "DRAM pages from swap").nj, 3 * 64 * 6.24);
  EXPECT_EQ(*term(cost, "MRAM pages to swap").ns, 0) << "hidden by the swap device's delay";
}

TEST(Account, has_the_standby_power_of_the_paper) {
  Machine machine = paper_machine();
  machine.dram_bytes = std::uint64_t{1} << 30U;
  machine.mram_bytes = 0;
  machine.compute_ns = 1e9;
  EXPECT_NEAR(*cost_of({}, machine, 1).energy_nj * 1e-9, 0.888, 0.0005) << "J in a second";
  machine = paper_machine();
  machine.compute_ns = 1e9;
  EXPECT_NEAR(*cost_of({}, machine, 1).energy_nj * 1e-9, 0.1155, 0.0001);
}

TEST(Account, charges_first_touches_only_if_asked) {
  Counters counters;
  counters[Place::dram].first_touches = 10;
  Machine machine = paper_machine();
  EXPECT_EQ(*cost_of(counters, machine, 10).swap_ns, 0);
  machine.first_touch_read = true;
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 10).swap_ns, 350000);
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 10).dynamic_nj, 10 * (7000 + 64 * 6.24));
}

TEST(Account, charges_pages_that_move_between_the_memories) {
  Counters counters;
  counters[Place::mram].moved_in = 2;
  const Cost cost = cost_of(counters, paper_machine(), 2);
  EXPECT_DOUBLE_EQ(*cost.time_ns, 1e6 + 2 * 64 * (22.5 + 15));
  EXPECT_DOUBLE_EQ(*cost.dynamic_nj, 2 * 64 * (6.24 + 2.6));
}

TEST(Account, takes_whole_access_units_of_the_swap_device) {
  Counters counters;
  counters[Place::dram].page_ins = 1;
  Machine machine = paper_machine();
  machine.page_bytes = 16384;
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 1).swap_ns, 4 * 35000.0);
  EXPECT_DOUBLE_EQ(*term(cost_of(counters, machine, 1), "swap reads").nj, 4 * 7000.0);
  machine.page_bytes = 1024;
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 1).swap_ns, 35000.0);
  EXPECT_DOUBLE_EQ(*term(cost_of(counters, machine, 1), "DRAM pages from swap").nj, 16 * 6.24);
}

TEST(Account, scales_energy_with_the_line) {
  Counters counters;
  counters[Place::dram].reads = 10;
  Machine machine = paper_machine();
  machine.line_bytes = 128;
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 1).dynamic_nj, 10 * 2 * 6.24);
}

TEST(Account, tells_how_long_the_swap_device_lasts) {
  Counters counters;
  EXPECT_FALSE(cost_of(counters, paper_machine(), 100).lifetime_runs.has_value());
  counters[Place::dram].page_outs = 50;
  const Cost own = cost_of(counters, paper_machine(), 100);
  EXPECT_DOUBLE_EQ(*own.lifetime_runs, 1e5 * 100 / 50);
  EXPECT_DOUBLE_EQ(*own.lifetime_s, *own.lifetime_runs * *own.time_ns * 1e-9);
  Machine machine = paper_machine();
  machine.swap_bytes = 400 * 4096;
  EXPECT_DOUBLE_EQ(*cost_of(counters, machine, 100).lifetime_runs, 1e5 * 400 / 50);
}

TEST(Account, leaves_absent_what_the_table_does_not_know) {
  Machine machine = paper_machine();
  machine.devices = devices_of("optane-100", "stt-mram-ddr4", "nvme-tlc", true).take();
  Counters counters;
  counters[Place::mram].reads = 10;
  const Cost cost = cost_of(counters, machine, 1);
  EXPECT_DOUBLE_EQ(*cost.memory_ns, 1350);
  EXPECT_FALSE(cost.energy_nj.has_value());
  EXPECT_FALSE(cost.static_nj.has_value());
  ASSERT_EQ(cost.unknown.size(), 3U);
  EXPECT_EQ(cost.unknown[0], "stt-mram-ddr4: read_nj_per_line");
  EXPECT_EQ(cost.unknown[1], "optane-100: standby_uw_per_mb");
}

TEST(Devices, of_different_assemblies_are_refused_or_warned_about) {
  EXPECT_EQ(devices_of("ddr4-3200", "reram", "nvme-tlc").status().code(), Code::invalid_argument);
  const auto mixed = devices_of("ddr4-3200", "reram", "nvme-tlc", true);
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(mixed.value().warnings.size(), 1U);
  EXPECT_TRUE(devices_of("ddr4-3200", "optane-100", "nvme-tlc").take().warnings.empty());
  EXPECT_FALSE(devices_of_preset("hosogaya2008").take().warnings.empty()) << "the paper mixes too";
  EXPECT_EQ(devices_of("ddr9", "reram", "nvme-tlc").status().code(), Code::not_found);
  EXPECT_EQ(devices_of_preset("nobody1999").status().code(), Code::not_found);
}

}  // namespace
}  // namespace perdure::sim
