// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include "core.hpp"
#include "energy/frequency.hpp"
#include "energy/io_worker.hpp"
#include "energy/keeper.hpp"
#include "energy/meters.hpp"
#include "energy/session.hpp"
#include "energy/settings.hpp"
#include "energy/state_directory.hpp"
#include "energy/storage.hpp"
#include "energy/sysfs.hpp"
#include "energy/tokens.hpp"
#include "status_error.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

using energy::machine;

IoKind kind_of(const std::string& op) {
  if (op == "read") return IoKind::read;
  if (op == "write") return IoKind::write;
  throw StatusError(Status(Code::invalid_argument, op + " is neither read nor write"));
}

nb::dict meter_dict(const energy::Meter& meter) {
  nb::dict row;
  row["interface"] = meter.interface;
  row["name"] = meter.name;
  row["path"] = "/" + meter.path;
  row["scope"] = meter.scope;
  row["readable"] = meter.readable;
  row["alive"] = nb::cast(meter.alive);
  row["counted"] = meter.counted;
  row["reason"] = meter.reason;
  row["remedy"] = meter.remedy;
  return row;
}

nb::list meter_rows(const std::vector<energy::Meter>& meters) {
  nb::list rows;
  for (const energy::Meter& meter : meters) rows.append(meter_dict(meter));
  return rows;
}

nb::dict policy_dict(const energy::FrequencyPolicy& policy) {
  nb::dict row;
  row["name"] = policy.name;
  row["driver"] = policy.driver;
  row["governor"] = policy.governor;
  row["governors"] = policy.governors;
  row["min_kHz"] = nb::cast(policy.min_khz);
  row["max_kHz"] = nb::cast(policy.max_khz);
  row["current_kHz"] = nb::cast(policy.current_khz);
  row["least_kHz"] = nb::cast(policy.least_khz);
  row["most_kHz"] = nb::cast(policy.most_khz);
  row["steps_kHz"] = policy.steps_khz;
  row["settable"] = policy.settable;
  return row;
}

nb::dict report_dict(const energy::FrequencyReport& report) {
  nb::list policies;
  for (const energy::PolicyReport& policy : report.policies) {
    nb::dict row;
    row["policy"] = policy.policy;
    row["requested_kHz"] = policy.requested_khz;
    row["applied_kHz"] = nb::cast(policy.applied_khz);
    row["effective_kHz"] = nb::cast(policy.effective_khz);
    row["reason"] = policy.reason;
    policies.append(row);
  }
  nb::dict all;
  all["policies"] = policies;
  all["applied"] = report.applied();
  all["not_applied"] = report.not_applied();
  all["failed"] = !report.reason.empty();
  all["boost"] = report.boost;
  return all;
}

energy::FrequencyControl control() {
  return {machine(), energy::state_directory(), 10'000};
}

// Held by nobody that lives, or by the process `pid` as long as it does.
energy::FrequencyReport cap(std::uint64_t khz, std::optional<std::int64_t> pid) {
  energy::Owner owner = energy::process_of(pid.value_or(::getpid()));
  if (owner.pid == 0) {
    throw StatusError(Status(Code::not_found, "there is no process " + std::to_string(*pid)));
  }
  owner.lasting = !pid;
  return control().cap(owner, khz);
}

nb::list journal_rows() {
  nb::list rows;
  energy::Processes processes;
  for (const energy::PolicyRecord& policy : value_or_raise(control().journal()).policies) {
    for (const energy::CapOwner& cap : policy.owners) {
      nb::dict row;
      row["policy"] = policy.name;
      row["cap_kHz"] = cap.cap_khz;
      row["pid"] = cap.owner.pid;
      row["lasting"] = cap.owner.lasting;
      row["alive"] = processes.is_alive(cap.owner);
      rows.append(row);
    }
  }
  return rows;
}

nb::dict storage_dict(const std::string& path) {
  const energy::Storage storage = value_or_raise(energy::storage_of(machine(), path));
  nb::dict row;
  row["name"] = storage.name;
  row["model"] = storage.model;
  row["firmware"] = storage.firmware;
  row["file_system"] = storage.file_system;
  row["options"] = storage.options;
  row["is_memory"] = storage.is_memory;
  return row;
}

nb::dict facts_dict(const energy::EnergySession& session) {
  const energy::SessionFacts facts = session.facts();
  nb::dict row;
  row["device"] = facts.device;
  row["tokens_taken"] = facts.tokens.taken;
  row["went_ahead"] = facts.tokens.went_ahead;
  row["went_ahead_because"] = facts.tokens.reason;
  row["waited_s"] = static_cast<double>(facts.tokens.waited_ns) / 1e9;
  row["capped"] = facts.capped;
  row["not_capped"] = facts.not_capped;
  row["not_applied"] = facts.not_applied;
  row["frequency"] = report_dict(session.last_report());
  return row;
}

void bind_meters(nb::module_& core) {
  nb::class_<energy::EnergySum>(core, "EnergySum", "Joules of the meters that are to be trusted.")
      .def("sample", &energy::EnergySum::sample,
           "Joules since it was made; None once a counter can't be followed any more.")
      .def_prop_ro("name", &energy::EnergySum::name)
      .def_prop_ro("scope", &energy::EnergySum::scope);
  core.def(
      "energy_meters",
      [](unsigned load_ms) {
        std::vector<energy::Meter> meters;
        {
          const nb::gil_scoped_release unlocked;
          meters = energy::probe_meters(machine(), energy::kernel_perf_events(), load_ms);
        }
        auto sum = energy::EnergySum::of(meters, machine(), energy::kernel_perf_events());
        return nb::make_tuple(meter_rows(meters), nb::cast(std::move(sum)));
      },
      nb::arg("load_ms"), "(rows, EnergySum or None), after a short load on all processors.");
  core.def(
      "sysfs_read",
      [](const std::string& path) -> std::optional<std::string> {
        const energy::SysfsText got = machine().read(path);
        if (!got.ok()) return std::nullopt;
        return got.text;
      },
      nb::arg("path"), "A file below the root, or None.");
  core.def(
      "sysfs_list", [](const std::string& path) { return machine().list(path); }, nb::arg("path"),
      "Names in a folder below the root.");
}

void bind_frequency(nb::module_& core) {
  core.def(
      "energy_policies",
      [] {
        nb::list rows;
        for (const auto& policy : energy::frequency_policies(machine())) {
          rows.append(policy_dict(policy));
        }
        return rows;
      },
      "The frequency policies of this machine.");
  core.def(
      "energy_why_not", [] { return control().why_not(); },
      "Why the clock can't be capped; empty if it can.");
  core.def(
      "energy_cap",
      [](std::uint64_t khz, std::optional<std::int64_t> pid) {
        auto report = cap(khz, pid);
        ::usleep(50'000);
        control().measure_effect(report);
        return report_dict(report);
      },
      nb::arg("khz"), nb::arg("pid"), "Caps the clock until it is restored, or `pid` has ended.");
  core.def("energy_release", [] { return report_dict(control().release_lasting()); });
  core.def("energy_restore_stale", [] { return report_dict(control().restore_stale()); });
  core.def("energy_journal", &journal_rows, "Who holds caps.");
  core.def("energy_remove_tokens", &energy::remove_unused_tokens);
}

void bind_session(nb::module_& core) {
  nb::class_<energy::EnergySession>(core, "EnergySession", "Tokens and caps around I/O of a path.")
      .def(
          "acquire",
          [](energy::EnergySession& session, const std::string& op) {
            const IoKind kind = kind_of(op);
            const nb::gil_scoped_release unlocked;
            session.acquire(kind);
          },
          nb::arg("op"))
      .def("release", &energy::EnergySession::release, nb::call_guard<nb::gil_scoped_release>())
      .def("facts", &facts_dict);
  core.def(
      "energy_session",
      [](const std::string& path, std::optional<std::uint64_t> khz, unsigned writers,
         std::uint32_t timeout_ms) {
        const auto storage = value_or_raise(energy::storage_of(machine(), path));
        const energy::Settings settings{khz, writers};
        const energy::SessionRequest request{path, settings, settings, timeout_ms};
        return std::make_unique<energy::EnergySession>(machine(), storage, request);
      },
      nb::arg("path"), nb::arg("khz"), nb::arg("writers"), nb::arg("timeout_ms"));
  core.def("energy_storage", &storage_dict, nb::arg("path"), "The device that a path lies on.");
  core.def(
      "energy_best_settings",
      [](const std::string& profile, const std::string& op) {
        const auto read = value_or_raise(energy::read_profile(profile));
        const auto best = energy::best_settings(read, kind_of(op));
        if (!best) {
          throw StatusError(Status(Code::not_found, profile + " has no points of " + op));
        }
        return nb::make_tuple(nb::cast(best->freq_khz), best->writers, read.device);
      },
      nb::arg("profile"), nb::arg("op"), "(kHz or None, writers, device).");
}

using Share = std::tuple<std::string, std::uint64_t, std::uint64_t>;

// Joules, and seconds between the looks at the meter that they were counted between.
using Used = std::optional<std::pair<double, double>>;
using Times = std::vector<std::tuple<double, double, double>>;

// What a sum of meters shows from its first look to its last.
class Watch {
 public:
  explicit Watch(energy::EnergySum* sum) : sum_(sum) {}
  void look() {
    if (sum_ == nullptr) return;
    const auto joules = sum_->sample();
    failed_ |= !joules;
    last_ = {joules.value_or(0), static_cast<double>(sum_->sampled_ns()) / 1e9};
    if (!first_) first_ = last_;
  }
  Used used() const {
    if (!first_ || failed_) return std::nullopt;
    return std::pair{last_.first - first_->first, last_.second - first_->second};
  }

 private:
  energy::EnergySum* sum_;
  bool failed_ = false;
  Used first_;
  std::pair<double, double> last_;
};

std::pair<Times, Used> do_io(const std::string& op, const std::vector<Share>& shares, bool direct,
                             bool sync, bool create, std::uint64_t seed, energy::EnergySum* sum) {
  std::vector<energy::IoRequest> requests;
  for (const auto& [path, offset, bytes] : shares) {
    requests.push_back(
        {kind_of(op), path, offset, bytes, direct, sync, create, seed + requests.size()});
  }
  Watch watch(sum);
  std::vector<energy::IoTimes> times;
  {
    const nb::gil_scoped_release unlocked;
    times = value_or_raise(energy::run_workers(requests, [&watch] { watch.look(); }));
  }
  Times rows;
  for (const auto& each : times) rows.emplace_back(each.start_s, each.end_s, each.cpu_s);
  return {rows, watch.used()};
}

void bind_worker(nb::module_& core) {
  core.def(
      "energy_io", &do_io, nb::arg("op"), nb::arg("shares"), nb::kw_only(), nb::arg("direct"),
      nb::arg("sync"), nb::arg("create"), nb::arg("seed"), nb::arg("sum").none(),
      "A process for each share (path, offset, bytes): its start, end and CPU time in seconds; "
      "and (joules, seconds) of the meters, or None.");
}

}  // namespace

void bind_energy(nb::module_& core) {
  bind_meters(core);
  bind_frequency(core);
  bind_session(core);
  bind_worker(core);
}

}  // namespace perdure::python
