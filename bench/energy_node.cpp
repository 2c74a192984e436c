// SPDX-License-Identifier: BSD-3-Clause
//
// The node's part of energy-aware commits: what `perdure bench energy` runs.
//
//   cap --khz N       caps the clock and gives it back; under the fake machine of the tests it is
//                     killed at each of its writes
//   stale             restores what such a run left behind
//   token-cost        facts: a writer token taken and given back, nobody else wanting it
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/fact.hpp"
#include "energy/frequency.hpp"
#include "energy/state_directory.hpp"
#include "energy/sysfs.hpp"
#include "energy/tokens.hpp"
#include "words.hpp"

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
  perdure::bench::Words words("The node's part of energy-aware commits");
  std::string what;
  std::uint64_t khz = 1'000'000;
  int repeats = 50;
  words.one_of({"cap", "stale", "token-cost"}, "what", what,
               "cap the clock and give it back, restore what a dead process left, or take tokens",
               perdure::bench::Words::Need::required);
  words.number("--khz", khz, "the cap", 1);
  words.number("--repeats", repeats, "samples of token-cost", 1);
  if (const auto code = words.parse(argc, argv)) return *code;
  if (what == "cap") return cap_and_release(khz);
  return what == "stale" ? restore_stale() : token_cost(repeats);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_energy_node: %s\n", error.what());
  return 1;
}
