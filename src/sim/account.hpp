// SPDX-License-Identifier: BSD-3-Clause
//
// Account: counters → time and energy, term by term (paging paper, section 3.2). Pure.
//
//   time    computation + Σ accesses · delay + flash reads · delay + flash writes · delay
//           (moving lines between memory and swap is hidden by the swap's delay)
//   energy  Σ accesses · energy
//           + flash reads · (energy + lines of a page · write energy of the memory)
//           + flash writes · (energy + lines of a page · read energy) + time · Σ capacity · standby
//
// A first touch is read from swap only if `first_touch_read`; otherwise the page is new and costs
// nothing (the zeroing of pages is not modelled). A page that is larger than the access unit of the
// swap device takes one delay for each unit. A quantity that the device table does not have makes
// the sums that need it absent, and is named in `unknown`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "model/device_table.hpp"
#include "sim/counters.hpp"

namespace perdure::sim {

// The memory models of a machine.
struct Devices {
  MemoryModel dram;
  MemoryModel mram;
  MemoryModel flash;
  std::vector<std::string> warnings;  // for people: what is questionable about the combination
};

// By preset ("hosogaya2008"), or by device specs as for find_device(). DRAM and MRAM of different
// assemblies (a cell against a module) are Code::invalid_argument unless `mix_assemblies`; then,
// and where the swap device's assembly differs, there is a warning.
Result<Devices> devices_of_preset(const std::string& preset);
Result<Devices> devices_of(const std::string& dram, const std::string& mram,
                           const std::string& flash, bool mix_assemblies = false);

struct Machine {
  Devices devices;
  std::uint64_t dram_bytes = 0;
  std::uint64_t mram_bytes = 0;
  std::uint64_t swap_bytes = 0;  // wear is spread over it; 0: as large as the program
  std::uint32_t page_bytes = 4096;
  std::uint32_t line_bytes = 64;
  bool first_touch_read = false;
  double compute_ns = 0;
};

// count · unit, in time and in energy; absent where the device table has no number.
struct Term {
  std::string name;  // "DRAM reads", "flash writes", "MRAM standby", …
  double count = 0;  // accesses or pages; MiB for standby
  std::optional<double> unit_ns;
  std::optional<double> unit_nj;
  std::optional<double> ns;
  std::optional<double> nj;
};

struct Cost {
  std::vector<Term> terms;  // in the order of the formulas
  std::optional<double> time_ns;
  std::optional<double> memory_ns;  // delay of DRAM and MRAM
  std::optional<double> swap_ns;
  std::optional<double> energy_nj;
  std::optional<double> dynamic_nj;
  std::optional<double> static_nj;
  // How often the run can be repeated, or for how many seconds without a pause, until the swap
  // device is worn out, with perfect wear levelling. Absent where nothing is written or known.
  std::optional<double> lifetime_runs;
  std::optional<double> lifetime_s;
  std::vector<std::string> unknown;  // "flash (x): write_nj_per_line", …
};

// `pages` is how many the program touched.
Cost cost_of(const Counters& counters, const Machine& machine, std::uint64_t pages);

}  // namespace perdure::sim
