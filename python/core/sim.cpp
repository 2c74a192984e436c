// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "core.hpp"
#include "sim/policy.hpp"
#include "sim/run.hpp"
#include "sim/sweep.hpp"
#include "status_error.hpp"
#include "trace/reader.hpp"
#include "watched.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A numpy array that owns its elements.
template <typename T>
Array<T> array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* all) noexcept { delete static_cast<std::vector<T>*>(all); });
  return Array<T>(kept->data(), {kept->size()}, owner);
}

std::unique_ptr<trace::Reader> open_trace(const std::string& path, const std::string& region) {
  auto reader = value_or_raise(trace::Reader::open(path));
  if (!region.empty()) raise_on_failure(reader->only_region(region));
  return reader;
}

sim::FirstTouch first_touch_of(bool clean) {
  return clean ? sim::FirstTouch::clean : sim::FirstTouch::dirty;
}

std::function<bool(const sim::Progress&)> of_replay(const Progress& call) {
  if (!call) return {};
  return [&call](const sim::Progress& progress) {
    return call(progress.accesses, progress.accesses_total);
  };
}

// Time and energy for each number of DRAM frames in `frames`, absent ones as NaN.
struct Costs {
  std::vector<double> time_ns;
  std::vector<double> energy_nj;
};

Costs costs_of(const sim::Curve& curve, sim::Machine machine,
               const std::vector<std::uint64_t>& frames) {
  Costs costs;
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  machine.mram_bytes = curve.mram_frames * machine.page_bytes;
  for (const std::uint64_t each : frames) {
    machine.dram_bytes = each * machine.page_bytes;
    const sim::Cost cost = sim::cost_of(curve.counters(each), machine, curve.pages);
    costs.time_ns.push_back(cost.time_ns.value_or(none));
    costs.energy_nj.push_back(cost.energy_nj.value_or(none));
  }
  return costs;
}

void bind_devices_of(nb::module_& core) {
  nb::class_<DevicePreset>(core, "DevicePreset", "Memory models that are simulated together.")
      .def_ro("name", &DevicePreset::name)
      .def_ro("description", &DevicePreset::description)
      .def_ro("dram", &DevicePreset::dram)
      .def_ro("mram", &DevicePreset::mram)
      .def_ro("flash", &DevicePreset::flash);
  core.def("device_presets", [] { return value_or_raise(device_presets()); }, "All, in order.");
  nb::class_<sim::Devices>(core, "Devices", "The memory models of a machine.")
      .def_ro("dram", &sim::Devices::dram)
      .def_ro("mram", &sim::Devices::mram)
      .def_ro("flash", &sim::Devices::flash)
      .def_ro("warnings", &sim::Devices::warnings);
  core.def(
      "devices_of",
      [](const std::string& dram, const std::string& mram, const std::string& flash, bool mix) {
        return value_or_raise(sim::devices_of(dram, mram, flash, mix));
      },
      nb::arg("dram"), nb::arg("mram"), nb::arg("flash"), nb::arg("mix_assemblies") = false,
      "By their specs: the name of a memory model, or \"name,key=value,…\".");
}

void bind_cost(nb::module_& core) {
  nb::class_<sim::Term>(core, "Term", "count times unit, in time and energy.")
      .def_ro("name", &sim::Term::name)
      .def_ro("count", &sim::Term::count)
      .def_ro("unit_ns", &sim::Term::unit_ns)
      .def_ro("unit_nj", &sim::Term::unit_nj)
      .def_ro("ns", &sim::Term::ns)
      .def_ro("nj", &sim::Term::nj);
  nb::class_<sim::Cost>(core, "Cost", "What a run costs; None where the device table is silent.")
      .def_ro("terms", &sim::Cost::terms)
      .def_ro("time_ns", &sim::Cost::time_ns)
      .def_ro("memory_ns", &sim::Cost::memory_ns)
      .def_ro("swap_ns", &sim::Cost::swap_ns)
      .def_ro("energy_nj", &sim::Cost::energy_nj)
      .def_ro("dynamic_nj", &sim::Cost::dynamic_nj)
      .def_ro("static_nj", &sim::Cost::static_nj)
      .def_ro("lifetime_runs", &sim::Cost::lifetime_runs)
      .def_ro("lifetime_s", &sim::Cost::lifetime_s)
      .def_ro("unknown", &sim::Cost::unknown);
  nb::class_<sim::PlaceCounters>(core, "PlaceCounters", "What happened in one memory.")
      .def_ro("reads", &sim::PlaceCounters::reads)
      .def_ro("writes", &sim::PlaceCounters::writes)
      .def_ro("page_ins", &sim::PlaceCounters::page_ins)
      .def_ro("first_touches", &sim::PlaceCounters::first_touches)
      .def_ro("page_outs", &sim::PlaceCounters::page_outs)
      .def_ro("clean_evictions", &sim::PlaceCounters::clean_evictions)
      .def_ro("moved_in", &sim::PlaceCounters::moved_in);
  nb::class_<sim::Counters>(core, "Counters", "What happened, by memory.")
      .def_prop_ro("dram", [](const sim::Counters& all) { return all[sim::Place::dram]; })
      .def_prop_ro("mram", [](const sim::Counters& all) { return all[sim::Place::mram]; });
}

void bind_run(nb::module_& core) {
  nb::class_<sim::Outcome>(core, "Outcome", "One trace on one machine under one policy.")
      .def_ro("policy", &sim::Outcome::policy)
      .def_ro("options", &sim::Outcome::options)
      .def_ro("dram_frames", &sim::Outcome::dram_frames)
      .def_ro("mram_frames", &sim::Outcome::mram_frames)
      .def_ro("pages", &sim::Outcome::pages)
      .def_ro("records", &sim::Outcome::records)
      .def_ro("hits", &sim::Outcome::hits)
      .def_ro("counters", &sim::Outcome::counters)
      .def_ro("cost", &sim::Outcome::cost)
      .def_ro("is_bound", &sim::Outcome::is_bound)
      .def_ro("partial", &sim::Outcome::partial)
      .def_ro("warnings", &sim::Outcome::warnings)
      .def_prop_ro("mram_hit_rate", [](const sim::Outcome& outcome) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> samples;
        for (const auto& sample : outcome.mram_hit_rate) {
          samples.emplace_back(sample.accesses, sample.mram_accesses);
        }
        return samples;
      });
  core.def(
      "sim_run",
      [](const std::string& path, const sim::Devices& devices, std::uint64_t dram_bytes,
         std::uint64_t mram_bytes, std::uint64_t swap_bytes, const std::string& policy,
         const std::map<std::string, std::string>& options, bool clean, const std::string& region,
         std::optional<double> compute_ns, const nb::object& progress) {
        sim::Configuration wanted;
        wanted.devices = devices;
        wanted.dram_bytes = dram_bytes;
        wanted.mram_bytes = mram_bytes;
        wanted.swap_bytes = swap_bytes;
        wanted.policy = policy;
        wanted.policy_options = options;
        wanted.first_touch = first_touch_of(clean);
        wanted.compute_ns = compute_ns;
        const auto reader = open_trace(path, region);
        return watched(progress, [&](const Progress& watch) {
          wanted.progress = of_replay(watch);
          return sim::run(*reader, wanted);
        });
      },
      nb::arg("path"), nb::arg("devices"), nb::kw_only(), nb::arg("dram_bytes"),
      nb::arg("mram_bytes") = 0, nb::arg("swap_bytes") = 0, nb::arg("policy") = "lru",
      nb::arg("options") = std::map<std::string, std::string>{}, nb::arg("clean") = false,
      nb::arg("region") = "", nb::arg("compute_ns") = nb::none(), nb::arg("progress") = nb::none(),
      "Replays a trace. progress(accesses, of_all) is called now and then; False ends the run.");
}

void bind_policies(nb::module_& core) {
  nb::class_<sim::PolicyOption>(core, "PolicyOption", "An option of a policy.")
      .def_ro("name", &sim::PolicyOption::name)
      .def_ro("default_value", &sim::PolicyOption::default_value)
      .def_ro("description", &sim::PolicyOption::description)
      .def_ro("choices", &sim::PolicyOption::choices)
      .def_ro("least", &sim::PolicyOption::least)
      .def_ro("most", &sim::PolicyOption::most);
  nb::class_<sim::PolicyEntry>(core, "Policy", "A paging policy.")
      .def_ro("name", &sim::PolicyEntry::name)
      .def_ro("description", &sim::PolicyEntry::description)
      .def_ro("options", &sim::PolicyEntry::options)
      .def_ro("is_bound", &sim::PolicyEntry::is_bound);
  core.def(
      "sim_policies",
      [] {
        std::vector<sim::PolicyEntry> all;
        for (const sim::PolicyEntry* entry : sim::policies()) all.push_back(*entry);
        return all;
      },
      "All policies.");
}

void bind_sweep(nb::module_& core) {
  nb::class_<sim::Curve>(core, "Curve", "Every capacity of DRAM, at one of MRAM.")
      .def_ro("mram_frames", &sim::Curve::mram_frames)
      .def_ro("pages", &sim::Curve::pages)
      .def_ro("stack_pages", &sim::Curve::stack_pages)
      .def_ro("floor_pages", &sim::Curve::floor_pages)
      .def_prop_ro(
          "page_ins", [](const sim::Curve& curve) { return array_of(curve.page_ins); },
          nb::rv_policy::move)
      .def_prop_ro(
          "page_outs", [](const sim::Curve& curve) { return array_of(curve.page_outs); },
          nb::rv_policy::move)
      .def("counters", &sim::Curve::counters, nb::arg("dram_frames"))
      .def("low_power_equals", &sim::Curve::low_power_equals, nb::arg("dram_frames"),
           nb::arg("alpha"));
  nb::class_<sim::Curves>(core, "Curves", "What one pass over a trace gives.")
      .def_ro("curves", &sim::Curves::curves)
      .def_ro("page_bytes", &sim::Curves::page_bytes)
      .def_ro("line_bytes", &sim::Curves::line_bytes)
      .def_ro("compute_ns", &sim::Curves::compute_ns)
      .def_ro("records", &sim::Curves::records)
      .def_ro("accesses", &sim::Curves::accesses)
      .def_ro("accesses_total", &sim::Curves::accesses_total)
      .def_ro("partial", &sim::Curves::partial);
  core.def(
      "sim_sweep",
      [](const std::string& path, const std::vector<std::uint64_t>& mram_bytes,
         const sim::Devices& devices, const std::string& rank, bool clean,
         const std::string& region, const nb::object& progress) {
        sim::SweepConfiguration wanted;
        wanted.mram_bytes = mram_bytes;
        wanted.devices = devices;
        wanted.rank = rank;
        wanted.first_touch = first_touch_of(clean);
        const auto reader = open_trace(path, region);
        return watched(progress, [&](const Progress& watch) {
          wanted.progress = of_replay(watch);
          return sim::sweep(*reader, wanted);
        });
      },
      nb::arg("path"), nb::arg("mram_bytes"), nb::arg("devices"), nb::kw_only(),
      nb::arg("rank") = "count", nb::arg("clean") = false, nb::arg("region") = "",
      nb::arg("progress") = nb::none(),
      "Every capacity of DRAM in one pass over the trace. progress as in sim_run: the curves are "
      "then partial.");
}

void bind_costs(nb::module_& core) {
  core.def(
      "sim_costs",
      [](const sim::Curves& curves, std::size_t index, const sim::Devices& devices,
         const std::vector<std::uint64_t>& frames, bool clean, std::optional<double> compute_ns) {
        sim::Machine machine;
        machine.devices = devices;
        machine.page_bytes = curves.page_bytes;
        machine.line_bytes = curves.line_bytes;
        machine.first_touch_read = clean;
        machine.compute_ns = compute_ns.value_or(curves.compute_ns);
        Costs costs;
        {
          const nb::gil_scoped_release unlocked;
          costs = costs_of(curves.curves.at(index), machine, frames);
        }
        return nb::make_tuple(array_of(std::move(costs.time_ns)),
                              array_of(std::move(costs.energy_nj)));
      },
      nb::arg("curves"), nb::arg("index"), nb::arg("devices"), nb::arg("frames"),
      nb::arg("clean") = false, nb::arg("compute_ns") = nb::none(),
      "Nanoseconds and nanojoules of a curve at these numbers of DRAM frames; NaN: not known.");
}

void bind_page_accesses(nb::module_& core) {
  core.def(
      "page_accesses",
      [](const std::string& path) {
        auto reader = value_or_raise(trace::Reader::open(path));
        const trace::Totals* totals = value_or_raise(reader->totals());
        std::vector<std::uint64_t> counts;
        for (const trace::PageCounts& page : totals->pages) {
          counts.push_back(page.reads + page.writes);
        }
        return array_of(std::move(counts));
      },
      nb::arg("path"), "How often each page is accessed, in the order of first touch.");
}

}  // namespace

void bind_sim(nb::module_& core) {
  bind_devices_of(core);
  bind_cost(core);
  bind_policies(core);
  bind_run(core);
  bind_sweep(core);
  bind_costs(core);
  bind_page_accesses(core);
}

}  // namespace perdure::python
