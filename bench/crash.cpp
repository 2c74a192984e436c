// SPDX-License-Identifier: BSD-3-Clause
//
// bench_crash: crash images of small runs of the real code, in each mode and atomicity model, on
// one rank and on two, each recovered and compared with a plain list of versions
// (tests/crash/sweep.hpp).
//
// Metrics: images (target: in all at least 100,000 in the full form) and wrong (target: 0).
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/fact.hpp"
#include "script.hpp"
#include "sweep.hpp"
#include "words.hpp"

namespace perdure {
namespace {

constexpr double images_target = 100000;

struct Total {
  std::uint64_t images = 0;
  std::uint64_t wrong = 0;
  std::string first_wrong;
};

struct Sweep {
  const char* name;
  SweepResult (*run)(const SweepOptions&);
  std::uint64_t versions;
  bool asynchronous;
  std::uint64_t bound;        // images per fence, or per event of a rank
  std::uint64_t bound_quick;  // the same for a check within a minute
};

constexpr Sweep sweeps[] = {
    {"one rank", sweep_one_rank, 10, false, 2000, 150},
    {"one rank, asynchronous", sweep_one_rank, 10, true, 500, 50},
    {"two ranks", sweep_two_ranks, 3, false, 60, 8},
    {"two ranks, after a crash", sweep_two_ranks_after_a_crash, 3, false, 30, 4},
    {"two ranks, after a failure", sweep_two_ranks_with_a_failure, 2, false, 30, 4},
};

Fact count_of(const std::string& name, const char* metric, std::uint64_t count) {
  return of_samples({.bench = "crash", .name = name, .metric = metric, .unit = ""},
                    {static_cast<double>(count)});
}

void report(const std::string& what, const SweepResult& result, AtomicityModel model,
            std::size_t line_bytes, std::uint64_t seed, Total& total) {
  const std::string name =
      std::string(what) + ", " + atomicity_name(model) + ", lines of " + std::to_string(line_bytes);
  Fact images = count_of(name, "images", result.images);
  images.more = {{"fences", static_cast<std::int64_t>(result.fences)},
                 {"fences_sampled", static_cast<std::int64_t>(result.sampled)},
                 {"seed", static_cast<std::int64_t>(seed)}};
  print_fact(images);
  Fact wrong = at_most(0, count_of(name, "wrong", result.wrong));
  if (result.wrong != 0) wrong.more = {{"first_wrong", result.first_wrong}};
  print_fact(wrong);
  total.images += result.images;
  total.wrong += result.wrong;
  if (total.first_wrong.empty()) total.first_wrong = result.first_wrong;
}

Total run_all(bool quick, std::uint64_t seed) {
  Total total;
  for (const Sweep& sweep : sweeps) {
    for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::twin, ArrayMode::log}) {
      for (const AtomicityModel model :
           {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
        for (const std::size_t line_bytes : {64U, 256U}) {
          SweepOptions options;
          options.mode = mode;
          options.model = model;
          options.line_bytes = line_bytes;
          options.versions = sweep.versions;
          options.asynchronous = sweep.asynchronous;
          options.images_per_fence = quick ? sweep.bound_quick : sweep.bound;
          options.seed = seed;
          report(std::string(mode_name(mode)) + ", " + sweep.name, sweep.run(options), model,
                 line_bytes, seed, total);
        }
      }
    }
  }
  return total;
}

// Versions that are restored and deleted, arrays that come and go, staged commits.
void run_scripts(bool quick, std::uint64_t seed, Total& total) {
  for (ScriptOptions options : all_scripts(1)) {
    for (const AtomicityModel model :
         {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
      for (const std::size_t line_bytes : {64U, 256U}) {
        options.model = model;
        options.line_bytes = line_bytes;
        options.seed = seed;
        options.images_per_moment = quick ? 20 : 300;
        report(options.name + ", one rank", sweep_script(options), model, line_bytes, seed, total);
        options.images_per_moment = quick ? 2 : 16;
        report(options.name + ", two ranks", sweep_script_of_two_ranks(options), model, line_bytes,
               seed, total);
      }
    }
  }
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) try {
  perdure::bench::Words words("Recovers from every crash image of small runs, and compares.");
  bool quick = false;
  std::uint64_t seed = 1;
  words.flag("--quick", quick, "fewer images per fence");
  words.number("--seed", seed, "of the images that are sampled");
  if (const auto code = words.parse(argc, argv)) return *code;
  perdure::Total total = perdure::run_all(quick, seed);
  perdure::run_scripts(quick, seed, total);
  const perdure::Fact images = perdure::count_of("all", "images", total.images);
  perdure::print_fact(quick ? images : perdure::at_least(perdure::images_target, images));
  perdure::print_fact(perdure::at_most(0, perdure::count_of("all", "wrong", total.wrong)));
  return total.wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_crash: %s\n", error.what());
  return 1;
}
