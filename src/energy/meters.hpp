// SPDX-License-Identifier: BSD-3-Clause
//
// Meters: what this node can say about the energy it uses, and a sum of what is to be trusted.
//
//   powercap  sys/class/powercap/*: counters of RAPL, known by their `name`, never by their number
//   perf      sys/bus/event_source/devices/power: the same counters by perf_event_open
//   hwmon     sys/class/hwmon/*: energy*_input, power*_average; the whole node where it is the
//             ACPI power meter, by which the kernel also shows IPMI DCMI
//   ipmi      dev/ipmi0: reported, not read
//
// Invariants
//   energy.M1  A meter is alive only if it advanced while the processors were busy, or soon after.
//       Virtual machines have counters that can be opened and stay 0 for ever; theirs is no energy
//       of 0 J.
//   energy.M2  What is summed is never counted twice: of RAPL, the packages and the memory (which
//       is not inside them), not their parts, not psys, not a copy (MMIO, or a die that shows its
//       package's counter).
//   energy.M3  A counter that went back has wrapped around if less than half its range lies
//       between; else there is no measurement, which is not one of 0 J.
//
// Threads: a sum is used by one thread. Failure: the reason and the remedy are in the meter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/sysfs.hpp"

namespace perdure::energy {

// perf_event_open and read; a seam for tests.
class PerfEvents {
 public:
  virtual ~PerfEvents() = default;
  virtual int open(std::uint32_t type, std::uint64_t config, int cpu) = 0;  // fd, or -errno
  virtual std::optional<std::uint64_t> read(int fd) = 0;
  virtual void close(int fd) = 0;
};
PerfEvents& kernel_perf_events();

struct Meter {
  std::string interface;  // powercap, perf, hwmon, ipmi
  std::string name;       // package-0, energy-pkg, power_meter power1_average
  std::string path;       // of what is read
  std::string scope;      // node, package; part: inside of another
  bool readable = false;
  std::optional<bool> alive;  // absent: not tried
  bool counted = false;       // by the sum of its interface
  std::string reason;         // why it is not used
  std::string remedy;         // one line for an administrator

  bool is_power = false;    // shows watts instead of counting joules
  double unit_j = 1e-6;     // or W
  std::uint64_t range = 0;  // 0: does not wrap
  std::uint32_t perf_type = 0;
  std::uint64_t perf_config = 0;
  std::vector<int> perf_cpus;  // one of each package
};

// All that are there; each is read once.
std::vector<Meter> list_meters(Sysfs& sysfs, PerfEvents& perf);
// The same, and whether they are alive, after `load_ms` on all processors (then it waits, up to
// 1.5 s, as long as some meter has not moved: there are slow ones). Decides what is counted.
std::vector<Meter> probe_meters(Sysfs& sysfs, PerfEvents& perf, unsigned load_ms);

// Between two values of a counter (energy.M3).
std::optional<std::uint64_t> advance(std::uint64_t before, std::uint64_t after,
                                     std::uint64_t range);

// Joules since it was made, of the best interface that is alive: of the whole node, else of the
// packages and the memory.
class EnergySum {
 public:
  // Null if no meter is alive.
  static std::unique_ptr<EnergySum> of(const std::vector<Meter>& probed, Sysfs& sysfs,
                                       PerfEvents& perf);
  ~EnergySum();
  EnergySum(const EnergySum&) = delete;
  EnergySum& operator=(const EnergySum&) = delete;

  // To be called at least each second where power is shown instead of counted, and at least twice
  // within the time in which a counter goes half round. Nothing once energy.M3 has failed.
  std::optional<double> sample();
  // When sample() was called last (monotonic_ns).
  std::uint64_t sampled_ns() const { return sampled_ns_; }
  const std::string& name() const { return name_; }
  const std::string& scope() const { return scope_; }

 private:
  struct Reading {
    Meter meter;
    std::vector<int> fds;  // of perf
    std::uint64_t before = 0;
  };
  EnergySum(Sysfs& sysfs, PerfEvents& perf) : sysfs_(sysfs), perf_(perf) {}
  bool add(const Meter& meter);
  bool sample_one(Reading& reading, double elapsed_s);

  Sysfs& sysfs_;
  PerfEvents& perf_;
  std::vector<Reading> readings_;
  std::string name_;
  std::string scope_;
  double joules_ = 0;
  bool failed_ = false;
  std::uint64_t sampled_ns_ = 0;
};

}  // namespace perdure::energy
