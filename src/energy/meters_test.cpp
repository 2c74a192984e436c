// SPDX-License-Identifier: BSD-3-Clause
//
// Meters of fake machines: what is alive, what is counted, and what is no meter.
#include "energy/meters.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "energy/testing/fake_tree.hpp"
#include "temporary_directory.hpp"

namespace perdure::energy {
namespace {

const std::string package = "sys/class/powercap/intel-rapl:0/energy_uj";
const std::string dram = "sys/class/powercap/intel-rapl:0:1/energy_uj";

// Events of the fake tree's files perf/CONFIG.
class FakePerf final : public PerfEvents {
 public:
  explicit FakePerf(Sysfs& sysfs) : sysfs_(sysfs) {}
  int open(std::uint32_t, std::uint64_t config, int) override {
    if (refused != 0) return -refused;
    files_[++last_] = "perf/0x" + std::to_string(config);
    return last_;
  }
  std::optional<std::uint64_t> read(int fd) override { return read_number(sysfs_, files_[fd]); }
  void close(int fd) override { files_.erase(fd); }
  bool all_closed() const { return files_.empty(); }
  int refused = 0;

 private:
  Sysfs& sysfs_;
  std::map<int, std::string> files_;
  int last_ = 100;
};

class Meters : public testing::Test {
 protected:
  Meters() : sysfs_(root_), perf_(sysfs_) {}
  ~Meters() override { EXPECT_TRUE(perf_.all_closed()); }
  void make(const char* kind) { ASSERT_TRUE(fake::make_machine(sysfs_.tree(), kind)); }
  std::vector<Meter> probe() { return probe_meters(sysfs_, perf_, 20); }
  // Counters stay where they are written.
  void freeze() const { std::filesystem::remove(root_ + "/behaviour"); }
  static const Meter& find(const std::vector<Meter>& meters, const std::string& path) {
    for (const Meter& meter : meters) {
      if (meter.path == path) return meter;
    }
    ADD_FAILURE() << "no meter " << path;
    return meters.front();
  }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string& root_ = directory_.path();
  fake::FakeSysfs sysfs_;
  FakePerf perf_;
};

TEST_F(Meters, counts_packages_and_memory_but_no_parts_no_psys_and_no_copies) {
  make("intel_pstate");
  const auto meters = probe();
  EXPECT_TRUE(find(meters, package).counted);
  EXPECT_TRUE(find(meters, dram).counted);
  const Meter& core = find(meters, "sys/class/powercap/intel-rapl:0:0/energy_uj");
  EXPECT_EQ(core.name, "core");
  EXPECT_TRUE(*core.alive);
  EXPECT_FALSE(core.counted);
  const Meter& psys = find(meters, "sys/class/powercap/intel-rapl:1/energy_uj");
  EXPECT_EQ(psys.name, "psys");
  EXPECT_FALSE(psys.counted);
  const Meter& mmio = find(meters, "sys/class/powercap/intel-rapl-mmio:0/energy_uj");
  EXPECT_TRUE(*mmio.alive);
  EXPECT_FALSE(mmio.counted);
  EXPECT_NE(mmio.reason.find("same counter"), std::string::npos);
}

TEST_F(Meters, of_a_virtual_machine_that_never_move_are_dead_and_there_is_no_sum) {
  make("intel_pstate");
  std::filesystem::remove_all(root_ + "/sys/class/powercap");
  sysfs_.tree().behave("perf/0x2 dead");
  const auto meters = probe();
  const Meter& psys = find(meters, "sys/bus/event_source/devices/power/events/energy-psys");
  EXPECT_TRUE(psys.readable);
  EXPECT_EQ(psys.alive, false);
  EXPECT_NE(psys.reason.find("dead"), std::string::npos);
  EXPECT_EQ(EnergySum::of(meters, sysfs_, perf_), nullptr);
}

TEST_F(Meters, are_summed_over_packages_and_memory) {
  make("intel_pstate");
  const auto meters = probe();
  freeze();
  auto sum = EnergySum::of(meters, sysfs_, perf_);
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->scope(), "package");
  sysfs_.tree().set(package, "16000000");  // from 13 J
  sysfs_.tree().set(dram, "15500000");     // from 15 J
  EXPECT_DOUBLE_EQ(sum->sample().value_or(-1), 3.5);
  sysfs_.tree().set(package, "17000000");
  EXPECT_DOUBLE_EQ(sum->sample().value_or(-1), 4.5);
}

TEST_F(Meters, that_wrap_are_followed_and_those_that_jump_back_are_none) {
  EXPECT_EQ(advance(90, 10, 100), 20U);
  EXPECT_EQ(advance(10, 90, 100), std::nullopt);
  EXPECT_EQ(advance(50, 40, 100), std::nullopt);
  EXPECT_EQ(advance(50, 40, 0), std::nullopt);
  EXPECT_EQ(advance(50, 60, 0), 10U);
  EXPECT_EQ(advance(101, 5, 100), std::nullopt);  // beyond its own range
}

TEST_F(Meters, that_wrap_at_work_are_summed_right) {
  make("amd-pstate-epp");
  const auto meters = probe();
  freeze();
  auto sum = EnergySum::of(meters, sysfs_, perf_);
  ASSERT_NE(sum, nullptr);
  double wanted_j = 0;
  std::uint64_t value_uj = 13'000'000;
  for (int i = 0; i < 10; ++i) {  // a third of the range each time
    const std::uint64_t range_uj = 262143328850;
    value_uj = (value_uj + range_uj / 3) % range_uj;
    wanted_j += static_cast<double>(range_uj / 3) / 1e6;
    sysfs_.tree().set(package, std::to_string(value_uj));
    EXPECT_NEAR(sum->sample().value_or(-1), wanted_j, 1e-3);
  }
}

TEST_F(Meters, that_jump_back_at_work_give_nothing) {
  make("amd-pstate-epp");
  const auto meters = probe();
  freeze();
  sysfs_.tree().set(package, "90000000");
  auto sum = EnergySum::of(meters, sysfs_, perf_);
  ASSERT_NE(sum, nullptr);
  sysfs_.tree().set(package, "1000000");
  EXPECT_EQ(sum->sample(), std::nullopt);
  EXPECT_EQ(sum->sample(), std::nullopt);  // and never again
}

TEST_F(Meters, that_move_once_in_a_while_are_alive) {
  make("amd-pstate-epp");
  sysfs_.tree().behave(package + " lag 400");
  EXPECT_TRUE(*find(probe(), package).alive);
}

TEST_F(Meters, without_permission_name_the_remedy) {
  make("intel_pstate");
  sysfs_.tree().behave("sys/class/powercap/*/energy_uj eacces");
  perf_.refused = EACCES;
  const auto meters = probe();
  EXPECT_NE(find(meters, package).remedy.find("chmod"), std::string::npos);
  const Meter& event = find(meters, "sys/bus/event_source/devices/power/events/energy-pkg");
  EXPECT_NE(event.remedy.find("perf_event_paranoid"), std::string::npos);
  EXPECT_EQ(EnergySum::of(meters, sysfs_, perf_), nullptr);
}

TEST_F(Meters, of_the_whole_node_come_first) {
  make("intel_pstate");
  sysfs_.tree().set("sys/class/hwmon/hwmon3/name", "power_meter");
  sysfs_.tree().set("sys/class/hwmon/hwmon3/power1_average", "250000000");
  auto sum = EnergySum::of(probe(), sysfs_, perf_);
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->scope(), "node");
  EXPECT_EQ(sum->name(), "hwmon:power_meter power1_average");
}

TEST_F(Meters, of_the_board_are_told_where_nothing_reads_them) {
  make("acpi-cpufreq");
  sysfs_.tree().set("dev/ipmi0", "");
  const auto meters = probe();
  const Meter& dcmi = find(meters, "dev/ipmi0");
  EXPECT_FALSE(dcmi.readable);
  EXPECT_NE(dcmi.remedy.find("modprobe"), std::string::npos);
}

}  // namespace
}  // namespace perdure::energy
