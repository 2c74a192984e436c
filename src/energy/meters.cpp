// SPDX-License-Identifier: BSD-3-Clause
#include "energy/meters.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/file_handle.hpp"
#include "base/quantity.hpp"

namespace perdure::energy {
namespace {

constexpr const char* powercap_path = "sys/class/powercap";
constexpr const char* perf_path = "sys/bus/event_source/devices/power";
constexpr const char* hwmon_path = "sys/class/hwmon";
constexpr std::uint64_t load_ns_max = 1'500'000'000;  // BMCs renew their value each second

class KernelPerfEvents final : public PerfEvents {
 public:
  int open(std::uint32_t type, std::uint64_t config, int cpu) override {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = type;
    wanted.config = config;
    const long fd = ::syscall(SYS_perf_event_open, &wanted, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    const int kept = above_standard(static_cast<int>(fd));
    return kept < 0 ? -errno : kept;
  }
  std::optional<std::uint64_t> read(int fd) override {
    std::uint64_t value = 0;
    if (::read(fd, &value, sizeof value) != sizeof value) return std::nullopt;
    return value;
  }
  void close(int fd) override { ::close(fd); }
};

void explain(Meter& meter, int error_number, const std::string& remedy) {
  meter.reason = std::strerror(error_number);
  if (error_number == EACCES || error_number == EPERM) meter.remedy = remedy;
}

void check_readable(Sysfs& sysfs, Meter& meter, const char* or_else) {
  const SysfsText got = sysfs.read(meter.path);
  meter.readable = got.ok() && number_in<std::uint64_t>(got.text).has_value();
  const int error_number = got.ok() ? EIO : got.error_number;
  if (!meter.readable) explain(meter, error_number, "as root: chmod a+r /" + meter.path + or_else);
}

std::string scope_of_zone(const std::string& name) {
  if (name.starts_with("package") || name == "psys") return "package";
  return name == "dram" ? "package" : "part";
}

void list_powercap(Sysfs& sysfs, std::vector<Meter>& meters) {
  auto zones = sysfs.list(powercap_path);
  std::stable_partition(zones.begin(), zones.end(), [](const std::string& zone) {
    return zone.find("mmio") == std::string::npos;  // copies come after what they copy
  });
  for (const std::string& zone : zones) {
    const std::string folder = std::string(powercap_path) + "/" + zone;
    Meter meter;
    meter.name = read_text(sysfs, folder + "/name");
    if (meter.name.empty() || zone.find(':') == std::string::npos) continue;
    meter.interface = "powercap";
    meter.path = folder + "/energy_uj";
    meter.scope = scope_of_zone(meter.name);
    meter.range = read_number(sysfs, folder + "/max_energy_range_uj").value_or(0);
    check_readable(sysfs, meter, ", or a udev rule (docs/energy.md)");
    meters.push_back(meter);
  }
}

std::vector<int> cpus_of(const std::string& mask) {
  std::vector<int> cpus;
  for (const auto part : std::views::split(mask, ',')) {
    const std::string_view word(part.begin(), part.end());
    const std::size_t dash = word.find('-');
    const auto first = number_in<std::uint64_t>(word.substr(0, dash));
    const auto last = dash == word.npos ? first : number_in<std::uint64_t>(word.substr(dash + 1));
    if (first && last && *last < 65536) {
      for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    }
  }
  return cpus;
}

void list_perf(Sysfs& sysfs, PerfEvents& perf, std::vector<Meter>& meters) {
  const std::string base = perf_path;
  const auto type = read_number(sysfs, base + "/type");
  if (!type) return;
  for (const std::string& event : sysfs.list(base + "/events")) {
    if (event.find('.') != std::string::npos) continue;
    Meter meter;
    meter.interface = "perf";
    meter.name = event;
    meter.path = base + "/events/" + event;
    meter.scope = event == "energy-pkg" || event == "energy-ram" || event == "energy-psys"
                      ? "package"
                      : "part";
    meter.perf_type = static_cast<std::uint32_t>(*type);
    const std::string config = read_text(sysfs, meter.path);  // "event=0x02"
    meter.perf_config = std::strtoull(config.substr(config.find('=') + 1).c_str(), nullptr, 0);
    meter.unit_j = std::atof(read_text(sysfs, meter.path + ".scale").c_str());
    meter.perf_cpus = cpus_of(read_text(sysfs, base + "/cpumask"));
    if (meter.perf_cpus.empty()) meter.perf_cpus = {0};
    const int fd = perf.open(meter.perf_type, meter.perf_config, meter.perf_cpus.front());
    meter.readable = fd >= 0 && meter.unit_j > 0;
    if (fd >= 0) perf.close(fd);
    if (fd < 0) {
      explain(meter, -fd, "as root: sysctl kernel.perf_event_paranoid=0, or give CAP_PERFMON");
    }
    meters.push_back(meter);
  }
}

void list_hwmon(Sysfs& sysfs, std::vector<Meter>& meters) {
  for (const std::string& chip : sysfs.list(hwmon_path)) {
    const std::string folder = std::string(hwmon_path) + "/" + chip;
    const std::string name = read_text(sysfs, folder + "/name");
    for (const std::string& file : sysfs.list(folder)) {
      const bool counts = file.starts_with("energy") && file.ends_with("_input");
      const bool shows = file.starts_with("power") && file.ends_with("_average");
      if (!counts && !shows) continue;
      Meter meter;
      meter.interface = "hwmon";
      meter.name = name + " " + file;
      meter.path = folder + "/" + file;
      meter.scope = name == "power_meter" ? "node" : "part";
      meter.is_power = shows;
      check_readable(sysfs, meter, "");
      meters.push_back(meter);
    }
  }
}

void list_ipmi(Sysfs& sysfs, std::vector<Meter>& meters) {
  const auto names = sysfs.list("dev");
  if (std::ranges::find(names, "ipmi0") == names.end()) return;
  Meter meter;
  meter.interface = "ipmi";
  meter.name = "DCMI";
  meter.path = "dev/ipmi0";
  meter.scope = "node";
  meter.reason = "the board's controller is there, and is read by way of hwmon only";
  meter.remedy = "as root: modprobe acpi_power_meter, or acpi_ipmi";
  meters.push_back(meter);
}

// One value of a counter, or of a power; of perf, the sum over the packages.
std::optional<std::uint64_t> read_once(Sysfs& sysfs, PerfEvents& perf, const Meter& meter,
                                       const std::vector<int>& fds) {
  if (meter.interface != "perf") return read_number(sysfs, meter.path);
  std::uint64_t sum = 0;
  for (const int fd : fds) {
    const auto value = perf.read(fd);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum;
}

std::vector<int> open_all(PerfEvents& perf, const Meter& meter) {
  std::vector<int> fds;
  if (meter.interface != "perf") return fds;
  for (const int cpu : meter.perf_cpus) {
    const int fd = perf.open(meter.perf_type, meter.perf_config, cpu);
    if (fd >= 0) fds.push_back(fd);
  }
  return fds;
}

void close_all(PerfEvents& perf, const std::vector<int>& fds) {
  for (const int fd : fds) perf.close(fd);
}

// What a meter showed before and after the load.
struct Trial {
  Meter* meter;
  std::vector<int> fds;
  std::optional<std::uint64_t> before;
  std::optional<std::uint64_t> after;
};

bool has_moved(const Trial& trial) {
  if (!trial.before || !trial.after) return false;
  return trial.meter->is_power ? *trial.after > 0 : *trial.before != *trial.after;
}

void judge(const Trial& trial) {
  Meter& meter = *trial.meter;
  meter.alive = false;
  if (!trial.before || !trial.after) {
    meter.reason = "it could be read once, and not again";
  } else if (!has_moved(trial)) {
    meter.reason = "dead: it shows " + std::to_string(*trial.after) +
                   " whatever the processors do (usual in virtual machines)";
  } else if (!meter.is_power && !advance(*trial.before, *trial.after, meter.range)) {
    meter.reason = "it went back from " + std::to_string(*trial.before) + " to " +
                   std::to_string(*trial.after);
  } else {
    meter.alive = true;
  }
}

// Keeps all processors busy until `done`.
void load_processors(const std::atomic<bool>& done) {
  std::vector<std::thread> threads;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < processors; ++i) {
    threads.emplace_back([&done] {
      double value = 1;
      while (!done.load(std::memory_order_relaxed)) {
        for (int k = 0; k < 10000; ++k) value = std::sqrt(value + k);
      }
      static std::atomic<double> kept;
      kept = value;  // so that the loop stays
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A counter that is renewed late shows the energy of the load then: the rest of the time is waited
// for, and the processors are left to others.
void run_trials(Sysfs& sysfs, PerfEvents& perf, std::vector<Trial>& trials, unsigned load_ms) {
  for (Trial& trial : trials) trial.before = read_once(sysfs, perf, *trial.meter, trial.fds);
  const auto interval = std::chrono::milliseconds(std::max(load_ms, 1U));
  std::atomic<bool> done{false};
  std::thread load([&done] { load_processors(done); });
  const std::uint64_t start_ns = monotonic_ns();
  bool all_moved = false;
  do {
    std::this_thread::sleep_for(interval);
    for (Trial& trial : trials) trial.after = read_once(sysfs, perf, *trial.meter, trial.fds);
    all_moved = std::ranges::all_of(trials, has_moved);
    done = true;
  } while (!all_moved && monotonic_ns() - start_ns < load_ns_max);
  load.join();
}

// Two names of one counter: read between two looks at the other, it shows what lies between theirs,
// however long the looks take. Two counters that differ do so by a rare accident, and not thrice.
bool is_copy(Sysfs& sysfs, PerfEvents& perf, const Trial& trial, const Trial& of) {
  if (trial.meter->interface != of.meter->interface || trial.meter->is_power) return false;
  constexpr double slack_j = 0.1;  // of two ways to one register that is renewed each millisecond
  for (int look = 0; look < 3; ++look) {
    const auto first = read_once(sysfs, perf, *of.meter, of.fds);
    const auto between = read_once(sysfs, perf, *trial.meter, trial.fds);
    const auto last = read_once(sysfs, perf, *of.meter, of.fds);
    if (!first || !between || !last) return false;
    const double value_j = static_cast<double>(*between) * trial.meter->unit_j;
    if (value_j < static_cast<double>(*first) * of.meter->unit_j - slack_j) return false;
    if (value_j > static_cast<double>(*last) * of.meter->unit_j + slack_j) return false;
  }
  return true;
}

bool may_be_counted(const Meter& meter) {
  if (meter.interface == "hwmon") return meter.scope == "node";
  return meter.scope == "package" && meter.name != "psys" && meter.name != "energy-psys";
}

void choose_counted(Sysfs& sysfs, PerfEvents& perf, std::vector<Trial>& trials) {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Meter& meter = *trials[i].meter;
    if (meter.alive != true || !may_be_counted(meter)) continue;
    meter.counted = true;
    for (std::size_t k = 0; k < i && meter.counted; ++k) {
      if (!trials[k].meter->counted || !is_copy(sysfs, perf, trials[i], trials[k])) continue;
      meter.counted = false;
      meter.reason = "the same counter as " + trials[k].meter->path;
    }
  }
}

}  // namespace

PerfEvents& kernel_perf_events() {
  static KernelPerfEvents events;
  return events;
}

std::optional<std::uint64_t> advance(std::uint64_t before, std::uint64_t after,
                                     std::uint64_t range) {
  if (after < before && range == 0) return std::nullopt;
  if (range != 0 && (before > range || after > range)) return std::nullopt;
  const std::uint64_t delta = after >= before ? after - before : range - before + after;
  if (range != 0 && delta > range / 2) return std::nullopt;
  return delta;
}

std::vector<Meter> list_meters(Sysfs& sysfs, PerfEvents& perf) {
  std::vector<Meter> meters;
  list_powercap(sysfs, meters);
  list_perf(sysfs, perf, meters);
  list_hwmon(sysfs, meters);
  list_ipmi(sysfs, meters);
  return meters;
}

std::vector<Meter> probe_meters(Sysfs& sysfs, PerfEvents& perf, unsigned load_ms) {
  std::vector<Meter> meters = list_meters(sysfs, perf);
  std::vector<Trial> trials;
  for (Meter& meter : meters) {
    if (meter.readable) trials.push_back({&meter, open_all(perf, meter), {}, {}});
  }
  if (!trials.empty()) run_trials(sysfs, perf, trials, load_ms);
  for (const Trial& trial : trials) judge(trial);
  choose_counted(sysfs, perf, trials);
  for (const Trial& trial : trials) close_all(perf, trial.fds);
  return meters;
}

std::unique_ptr<EnergySum> EnergySum::of(const std::vector<Meter>& probed, Sysfs& sysfs,
                                         PerfEvents& perf) {
  std::unique_ptr<EnergySum> sum(new EnergySum(sysfs, perf));
  for (const char* interface : {"hwmon", "powercap", "perf"}) {
    for (const Meter& meter : probed) {
      if (meter.interface != interface || !meter.counted || !sum->add(meter)) continue;
      if (sum->readings_.size() == 1) sum->name_ = std::string(interface) + ":";
      sum->name_ += (sum->readings_.size() == 1 ? "" : "+") + meter.name;
      sum->scope_ = meter.scope;
      if (std::string(interface) == "hwmon") break;  // one of the whole node is enough
    }
    if (!sum->readings_.empty()) break;
  }
  if (sum->readings_.empty()) return nullptr;
  sum->sampled_ns_ = monotonic_ns();
  return sum;
}

EnergySum::~EnergySum() {
  for (const Reading& reading : readings_) close_all(perf_, reading.fds);
}

bool EnergySum::add(const Meter& meter) {
  Reading reading{meter, open_all(perf_, meter), 0};
  const auto now = read_once(sysfs_, perf_, meter, reading.fds);
  if (!now) {
    close_all(perf_, reading.fds);
    return false;
  }
  reading.before = *now;
  readings_.push_back(std::move(reading));
  return true;
}

bool EnergySum::sample_one(Reading& reading, double elapsed_s) {
  const auto now = read_once(sysfs_, perf_, reading.meter, reading.fds);
  if (!now) return false;
  const std::uint64_t before = std::exchange(reading.before, *now);
  if (reading.meter.is_power) {
    const double mean = static_cast<double>(before + *now) / 2;
    joules_ += mean * reading.meter.unit_j * elapsed_s;
    return true;
  }
  const auto delta = advance(before, *now, reading.meter.range);
  if (delta) joules_ += static_cast<double>(*delta) * reading.meter.unit_j;
  return delta.has_value();
}

std::optional<double> EnergySum::sample() {
  const std::uint64_t now_ns = monotonic_ns();
  const double elapsed_s = static_cast<double>(now_ns - sampled_ns_) / 1e9;
  sampled_ns_ = now_ns;
  for (Reading& reading : readings_) failed_ |= !sample_one(reading, elapsed_s);
  if (failed_) return std::nullopt;
  return joules_;
}

}  // namespace perdure::energy
