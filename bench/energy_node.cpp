// SPDX-License-Identifier: BSD-3-Clause
//
// The node's part of energy-aware commits: what `perdure bench energy` runs.
//
//   cap --khz N       caps the clock and gives it back; under the fake machine of the tests it is
//                     killed at each of its writes
//   stale             restores what such a run left behind
//   token-cost        facts: a writer token taken and given back, nobody else wanting it
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <vector>

#include "base/clock.hpp"
#include "base/fact.hpp"
#include "energy/frequency.hpp"
#include "energy/state_directory.hpp"
#include "energy/sysfs.hpp"
#include "energy/tokens.hpp"

namespace {

using perdure::energy::FrequencyControl;

int exit_code_of(const perdure::energy::FrequencyReport& report) {
  if (report.reason.empty()) return 0;
  std::fprintf(stderr, "bench_energy_node: %s\n", report.reason.c_str());
  return 1;
}

int cap_and_release(std::uint64_t khz) {
  FrequencyControl control(perdure::energy::machine(), perdure::energy::state_directory());
  const perdure::energy::Owner owner = perdure::energy::this_process();
  const int capped = exit_code_of(control.cap(owner, khz));
  return exit_code_of(control.release(owner)) + capped;
}

int restore_stale() {
  FrequencyControl control(perdure::energy::machine(), perdure::energy::state_directory());
  return exit_code_of(control.restore_stale());
}

int token_cost(int repeats) {
  constexpr int batch = 200;
  std::vector<double> samples;
  perdure::energy::WriterTokens tokens("bench");
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const std::uint64_t start_ns = perdure::monotonic_ns();
    for (int i = 0; i < batch; ++i) {
      tokens.acquire(1, 1000);
      tokens.release();
    }
    samples.push_back(static_cast<double>(perdure::monotonic_ns() - start_ns) / batch / 1000);
  }
  perdure::print_fact(perdure::of_samples(
      {.bench = "energy", .name = "token", .metric = "cost", .unit = "us"}, samples));
  return tokens.counters().went_ahead == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("The node's part of energy-aware commits");
  app.require_subcommand(1);
  std::uint64_t khz = 0;
  int repeats = 50;
  CLI::App* cap = app.add_subcommand("cap", "cap the clock and give it back");
  cap->add_option("--khz", khz, "the cap")->required();
  CLI::App* stale = app.add_subcommand("stale", "restore what a dead process left");
  CLI::App* cost = app.add_subcommand("token-cost", "of taking and giving back a token");
  cost->add_option("--repeats", repeats, "samples")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (cap->parsed()) return cap_and_release(khz);
  if (stale->parsed()) return restore_stale();
  return cost->parsed() ? token_cost(repeats) : 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_energy_node: %s\n", error.what());
  return 1;
}
