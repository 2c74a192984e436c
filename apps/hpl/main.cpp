// SPDX-License-Identifier: BSD-3-Clause
//
// hpl: a dense random system by blocked LU factorisation with partial pivoting, in the manner of
// the HPL benchmark. README.md shows how to run it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "hpl/lu.hpp"
#include "hpl/problem.hpp"
#include "hpl/product.hpp"
#include "job/ending.hpp"
#include "job/stopwatch.hpp"
#include "npb/region.hpp"

namespace hpl {
namespace {

struct Options {
  Index n = 1024;
  Index block = 128;
  std::uint64_t seed = 1;
  bool portable = false;
  bool json = false;
};

struct Result {
  const char* kernel;
  double solve_s, residual;
};

Result solve(const Options& options) {
  const Kernel& kernel = options.portable ? portable_kernel() : best_kernel();
  Product product(kernel);
  Array<double> numbers(options.n * (options.n + 1)), x(options.n);
  const View system{numbers.get(), options.n, options.n + 1, options.n};
  draw_system(system, options.seed);
  const job::Stopwatch watch;
  npb::mark_begin();
  factorise(system, options.block, product);
  solve_upper(system, x.get());
  npb::mark_end();
  const double solve_s = watch.seconds();
  return {kernel.name, solve_s, scaled_residual(options.n, options.seed, x.get())};
}

void print(const Options& options, const Result& result) {
  const auto n = static_cast<double>(options.n);
  const double gflops = 1e-9 * (2.0 / 3.0 * n * n * n + 1.5 * n * n) / result.solve_s;
  const bool passed = passes(result.residual);
  if (options.json) {
    const nlohmann::ordered_json line{{"program", "hpl"},
                                      {"n", options.n},
                                      {"block", options.block},
                                      {"seed", options.seed},
                                      {"kernel", result.kernel},
                                      {"array_bytes", npb::array_bytes},
                                      {"solve_s", result.solve_s},
                                      {"gflop_per_s", gflops},
                                      {"residual", result.residual},
                                      {"residual_max", residual_max},
                                      {"verification", passed ? "verified" : "failed"}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("hpl: n = %td, blocks of %td, seed %ju\n", options.n, options.block,
              std::uintmax_t{options.seed});
  std::printf("arrays %.1f MB\n", 1e-6 * static_cast<double>(npb::array_bytes));
  std::printf("solved in %.3f s, %.1f GFlop/s, kernel %s\n", result.solve_s, gflops, result.kernel);
  std::printf("||Ax-b|| / (eps (||A|| ||x|| + ||b||) n) = %.3e, %s %g\n", result.residual,
              passed ? "below" : "WRONG: not below", residual_max);
  std::printf("%s\n", passed ? "verified" : "verification FAILED");
}

void add_options(CLI::App& app, Options& options) {
  app.footer(
      "Examples:\n"
      "  hpl --n 8192                  537 MB\n"
      "  hpl --n 2000 --block 64 --json");
  app.option_defaults()->always_capture_default();
  app.add_option("--n", options.n, "rows of the system")->check(CLI::Range(Index{1}, Index{65536}));
  app.add_option("--block", options.block, "columns that are factorised at a time")
      ->check(CLI::Range(Index{1}, Index{65536}));
  app.add_option("--seed", options.seed, "another system for each");
  app.add_flag("--portable", options.portable, "don't use AVX2 where the processor has it");
  app.add_flag("--json", options.json, "print one JSON object instead of a summary");
}

}  // namespace
}  // namespace hpl

int main(int argc, char** argv) {
  hpl::Options options;
  CLI::App app("A dense random system by blocked LU factorisation with partial pivoting");
  hpl::add_options(app, options);
  try {
    app.parse(argc, argv);
    const hpl::Result result = hpl::solve(options);
    hpl::print(options, result);
    return hpl::passes(result.residual) ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return job::ended_at(app, error, true);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hpl: too little memory for n = %td; take a smaller --n\n", options.n);
  }
  return 1;
}
