// SPDX-License-Identifier: BSD-3-Clause
#include "sim/account.hpp"

#include <algorithm>
#include <span>

namespace perdure::sim {
namespace {

using Quantity = std::optional<double> MemoryModel::*;
constexpr double mib = 1024.0 * 1024.0;
constexpr std::uint64_t line_of_table = 64;  // bytes; the energies of the table are per line

std::optional<double> times(double count, std::optional<double> unit) {
  if (count == 0) return 0;  // whatever the unit costs
  return unit.has_value() ? std::optional<double>(count * *unit) : std::nullopt;
}

Term make_term(std::string name, double count, std::optional<double> unit_ns,
               std::optional<double> unit_nj) {
  return {std::move(name), count, unit_ns, unit_nj, times(count, unit_ns), times(count, unit_nj)};
}

std::optional<double> scaled(std::optional<double> value, double factor) {
  return value.has_value() ? std::optional<double>(*value * factor) : std::nullopt;
}

std::optional<double> plus(std::optional<double> one, std::optional<double> other) {
  return one.has_value() && other.has_value() ? std::optional<double>(*one + *other) : std::nullopt;
}

std::optional<double> sum(std::span<const Term> terms, std::optional<double> Term::* member) {
  std::optional<double> total = 0;
  for (const Term& term : terms) total = plus(total, term.*member);
  return total;
}

class Accountant {
 public:
  Accountant(const Counters& counters, const Machine& machine)
      : counters_(counters), machine_(machine) {}

  Cost account(std::uint64_t pages) {
    add_accesses(Place::dram, machine_.devices.dram, "DRAM");
    add_accesses(Place::mram, machine_.devices.mram, "MRAM");
    cost_.memory_ns = sum(cost_.terms, &Term::ns);
    const std::size_t before_swap = cost_.terms.size();
    add_swap();
    cost_.swap_ns = sum(std::span(cost_.terms).subspan(before_swap), &Term::ns);
    add_copies(Place::dram, machine_.devices.dram, "DRAM");
    add_copies(Place::mram, machine_.devices.mram, "MRAM");
    cost_.dynamic_nj = sum(cost_.terms, &Term::nj);
    cost_.terms.push_back(make_term("computation", 1, machine_.compute_ns, 0));
    cost_.time_ns = sum(cost_.terms, &Term::ns);  // moving pages between memories included
    const std::size_t before_standby = cost_.terms.size();
    add_standby(machine_.dram_bytes, machine_.devices.dram, "DRAM standby");
    add_standby(machine_.mram_bytes, machine_.devices.mram, "MRAM standby");
    cost_.static_nj = sum(std::span(cost_.terms).subspan(before_standby), &Term::nj);
    cost_.energy_nj = plus(cost_.dynamic_nj, cost_.static_nj);
    add_lifetime(pages);
    return std::move(cost_);
  }

 private:
  double lines_per_page() const {
    return static_cast<double>(machine_.page_bytes) / machine_.line_bytes;
  }

  // What is not known is kept by name, once; a quantity that nothing needs is not asked for.
  std::optional<double> get(const MemoryModel& model, Quantity quantity, bool is_needed) {
    const std::optional<double>& value = model.*quantity;
    if (value.has_value() || !is_needed) return value;
    const std::string name = sentence(model.name, ": ", key_of(quantity));
    if (std::ranges::find(cost_.unknown, name) == cost_.unknown.end()) {
      cost_.unknown.push_back(name);
    }
    return value;
  }

  // Of one line of the trace.
  std::optional<double> line_nj(const MemoryModel& model, Quantity quantity, bool is_needed) {
    return scaled(get(model, quantity, is_needed),
                  static_cast<double>(machine_.line_bytes) / line_of_table);
  }

  void add(const std::string& name, std::uint64_t count, std::optional<double> ns,
           std::optional<double> nj) {
    cost_.terms.push_back(make_term(name, static_cast<double>(count), ns, nj));
  }

  void add_accesses(Place place, const MemoryModel& model, const std::string& name) {
    const PlaceCounters& at = counters_[place];
    const bool reads = at.reads != 0, writes = at.writes != 0;
    add(name + " reads", at.reads, get(model, &MemoryModel::read_latency_ns, reads),
        line_nj(model, &MemoryModel::read_nj_per_line, reads));
    add(name + " writes", at.writes, get(model, &MemoryModel::write_latency_ns, writes),
        line_nj(model, &MemoryModel::write_nj_per_line, writes));
  }

  std::uint64_t swap_reads(Place place) const {
    const PlaceCounters& at = counters_[place];
    return at.page_ins + (machine_.first_touch_read ? at.first_touches : 0);
  }

  // The device takes whole access units.
  void add_swap() {
    const MemoryModel& model = machine_.devices.flash;
    const std::uint64_t units = (machine_.page_bytes + model.access_bytes - 1) / model.access_bytes;
    const double lines = static_cast<double>(units * model.access_bytes) / line_of_table;
    const std::uint64_t reads = swap_reads(Place::dram) + swap_reads(Place::mram);
    const std::uint64_t writes = counters_.sum(&PlaceCounters::page_outs);
    const auto delay = [&](Quantity quantity, std::uint64_t count) {
      return scaled(get(model, quantity, count != 0), static_cast<double>(units));
    };
    const auto energy = [&](Quantity quantity, std::uint64_t count) {
      return scaled(get(model, quantity, count != 0), lines);
    };
    add("swap reads", reads, delay(&MemoryModel::read_latency_ns, reads),
        energy(&MemoryModel::read_nj_per_line, reads));
    add("swap writes", writes, delay(&MemoryModel::write_latency_ns, writes),
        energy(&MemoryModel::write_nj_per_line, writes));
  }

  // Whole pages that a memory gives or takes: to and from swap, hidden by its delay; to and
  // from the other memory, where nothing hides them.
  void add_copies(Place place, const MemoryModel& model, const std::string& name) {
    const PlaceCounters& at = counters_[place];
    const Place other = place == Place::dram ? Place::mram : Place::dram;
    const std::uint64_t moved_out = counters_[other].moved_in;
    const bool gives = at.page_outs + moved_out != 0;
    const bool takes = swap_reads(place) + at.moved_in != 0;
    const double lines = lines_per_page();
    const auto read_nj = scaled(line_nj(model, &MemoryModel::read_nj_per_line, gives), lines);
    const auto write_nj = scaled(line_nj(model, &MemoryModel::write_nj_per_line, takes), lines);
    add(name + " pages to swap", at.page_outs, 0, read_nj);
    add(name + " pages from swap", swap_reads(place), 0, write_nj);
    add(name + " pages moved away", moved_out,
        scaled(get(model, &MemoryModel::read_latency_ns, moved_out != 0), lines), read_nj);
    add(name + " pages moved in", at.moved_in,
        scaled(get(model, &MemoryModel::write_latency_ns, at.moved_in != 0), lines), write_nj);
  }

  void add_standby(std::uint64_t bytes, const MemoryModel& model, const char* name) {
    const auto uw = get(model, &MemoryModel::standby_uw_per_mb, bytes != 0);
    // 1 uW for 1 ns is 1e-6 nJ.
    const auto unit = uw.has_value() && cost_.time_ns.has_value()
                          ? std::optional<double>(*uw * *cost_.time_ns * 1e-6)
                          : std::nullopt;
    cost_.terms.push_back(make_term(name, static_cast<double>(bytes) / mib, 0, unit));
  }

  void add_lifetime(std::uint64_t pages) {
    const std::uint64_t writes = counters_.sum(&PlaceCounters::page_outs);
    const auto& endurance = machine_.devices.flash.endurance_writes;
    if (writes == 0 || !endurance.has_value()) return;
    const std::uint64_t bytes =
        machine_.swap_bytes != 0 ? machine_.swap_bytes : pages * machine_.page_bytes;
    const double page_writes = *endurance * static_cast<double>(bytes) / machine_.page_bytes;
    cost_.lifetime_runs = page_writes / static_cast<double>(writes);
    cost_.lifetime_s = scaled(cost_.time_ns, *cost_.lifetime_runs * 1e-9);
  }

  const Counters& counters_;
  const Machine& machine_;
  Cost cost_;
};

}  // namespace

Cost cost_of(const Counters& counters, const Machine& machine, std::uint64_t pages) {
  return Accountant(counters, machine).account(pages);
}

}  // namespace perdure::sim
