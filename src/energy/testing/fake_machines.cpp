// SPDX-License-Identifier: BSD-3-Clause
//
// Trees as they are found on real machines, from the kernel's documentation of cpufreq,
// intel_pstate, amd-pstate, powercap and hwmon.
#include <filesystem>
#include <map>

#include "energy/testing/fake_tree.hpp"

namespace perdure::energy::fake {
namespace {

struct Kind {
  const char* driver;
  const char* governor;
  const char* governors;
  std::uint64_t least_khz;
  std::uint64_t most_khz;
  const char* steps;  // "": the driver lists none
  const char* boost;  // the file
  const char* boost_value;
  bool is_intel;
};

const std::map<std::string, Kind> kinds{
    {"intel_pstate",
     {"intel_pstate", "powersave", "performance powersave", 800000, 3700000, "",
      "sys/devices/system/cpu/intel_pstate/no_turbo", "0", true}},
    {"intel_cpufreq",
     {"intel_cpufreq", "schedutil",
      "conservative ondemand userspace powersave performance schedutil", 800000, 3700000, "",
      "sys/devices/system/cpu/intel_pstate/no_turbo", "0", true}},
    {"acpi-cpufreq",
     {"acpi-cpufreq", "ondemand", "conservative ondemand userspace powersave performance schedutil",
      800000, 2100000, "2100000 1700000 1400000 1000000 800000",
      "sys/devices/system/cpu/cpufreq/boost", "1", false}},
    {"amd-pstate-epp",
     {"amd-pstate-epp", "powersave", "performance powersave", 400000, 3700000, "",
      "sys/devices/system/cpu/cpufreq/boost", "1", false}},
};

void make_policies(const FakeTree& tree, const Kind& kind) {
  for (int number = 0; number < 2; ++number) {
    const std::string folder = "sys/devices/system/cpu/cpufreq/policy" + std::to_string(number);
    const auto set = [&](const char* name, const std::string& text) {
      tree.set(folder + "/" + name, text);
    };
    set("affected_cpus", std::to_string(number));
    set("related_cpus", std::to_string(number));
    set("cpuinfo_min_freq", std::to_string(kind.least_khz));
    set("cpuinfo_max_freq", std::to_string(kind.most_khz));
    set("cpuinfo_transition_latency", kind.is_intel ? "0" : "4000");
    set("scaling_driver", kind.driver);
    set("scaling_governor", kind.governor);
    set("scaling_available_governors", kind.governors);
    set("scaling_min_freq", std::to_string(kind.least_khz));
    set("scaling_max_freq", std::to_string(kind.most_khz));
    set("scaling_cur_freq", std::to_string(kind.most_khz));
    set("scaling_setspeed", "<unsupported>");
    if (*kind.steps != '\0') set("scaling_available_frequencies", kind.steps);
  }
  tree.set(kind.boost, kind.boost_value);
}

void make_zone(const FakeTree& tree, const std::string& zone, const char* name, int watts) {
  const std::string folder = "sys/class/powercap/" + zone;
  tree.set(folder + "/name", name);
  // Counters of one machine are far apart, having wrapped at other times.
  tree.set(folder + "/energy_uj", std::to_string(1'000'000 * (1 + zone.size())));
  tree.set(folder + "/max_energy_range_uj", "262143328850");
  if (watts > 0) tree.behave(folder + "/energy_uj power " + std::to_string(watts));
}

// The package's parts, dram beside them; a copy by way of MMIO; psys on its own.
void make_powercap(const FakeTree& tree, bool is_intel) {
  make_zone(tree, "intel-rapl:0", "package-0", 60);
  make_zone(tree, "intel-rapl:0:0", "core", 40);
  if (!is_intel) return;
  make_zone(tree, "intel-rapl:0:1", "dram", 10);
  make_zone(tree, "intel-rapl:1", "psys", 90);
  make_zone(tree, "intel-rapl-mmio:0", "package-0", 0);
  tree.behave(
      "sys/class/powercap/intel-rapl-mmio:0/energy_uj mirror "
      "sys/class/powercap/intel-rapl:0/energy_uj");
}

void make_perf(const FakeTree& tree, bool is_intel) {
  const std::string folder = "sys/bus/event_source/devices/power";
  tree.set(folder + "/type", "9");
  tree.set(folder + "/cpumask", "0");
  tree.set(folder + "/events/energy-pkg", "event=0x02");
  tree.set(folder + "/events/energy-pkg.scale", "1e-6");
  tree.set(folder + "/events/energy-pkg.unit", "Joules");
  tree.set("perf/0x2", "0");
  tree.behave("perf/0x2 power 60");
  if (!is_intel) return;
  tree.set(folder + "/events/energy-psys", "event=0x05");
  tree.set(folder + "/events/energy-psys.scale", "1e-6");
  tree.set(folder + "/events/energy-psys.unit", "Joules");
  tree.set("perf/0x5", "0");
}

// A disk with a partition, and an encrypted volume on it.
void make_disk(const FakeTree& tree) {
  const std::string block = "sys/devices/pci0000:00/0000:00:1f.2/block/sda";
  tree.set(block + "/dev", "8:0");
  tree.set(block + "/device/model", "FAKE SSD 320");
  tree.set(block + "/device/rev", "4PC10362");
  tree.set(block + "/sda1/partition", "1");
  tree.set("sys/devices/virtual/block/dm-0/dm/name", "volume");
  namespace fs = std::filesystem;
  const fs::path root = tree.root();
  fs::create_directories(root / "sys/devices/virtual/block/dm-0/slaves");
  fs::create_directories(root / "sys/dev/block");
  std::error_code ignored;
  fs::create_symlink("../../../../pci0000:00/0000:00:1f.2/block/sda/sda1",
                     root / "sys/devices/virtual/block/dm-0/slaves/sda1", ignored);
  fs::create_symlink("../../" + block.substr(4), root / "sys/dev/block/8:0", ignored);
  fs::create_symlink("../../" + block.substr(4) + "/sda1", root / "sys/dev/block/8:1", ignored);
  fs::create_symlink("../../devices/virtual/block/dm-0", root / "sys/dev/block/253:0", ignored);
}

}  // namespace

bool make_machine(const FakeTree& tree, const std::string& kind) {
  const auto known = kinds.find(kind);
  if (known == kinds.end()) return false;
  tree.set("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555");
  tree.set("made", "now");
  std::filesystem::create_directories(tree.root() + "/run/perdure-energy");
  make_policies(tree, known->second);
  make_powercap(tree, known->second.is_intel);
  make_perf(tree, known->second.is_intel);
  make_disk(tree);
  return true;
}

}  // namespace perdure::energy::fake
