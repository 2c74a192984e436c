// eddy: decaying eddies in a periodic square, an incompressible flow whose exact solution is known.
// README.md shows how to run it.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "eddy/exact.hpp"
#include "eddy/flow_step.hpp"
#include "job/stopwatch.hpp"
#include "npb/loop.hpp"
#include "npb/ranks.hpp"

namespace eddy {
namespace {

namespace ranks = npb::ranks;

struct Options {
  Index n = 256;
  std::uint64_t steps = 100;
  double dt = 0;  // 0: an eighth of the distance of points
  bool json = false;
  npb::StateOptions state;
};

struct Result {
  double h = 0, dt = 0, time = 0;
  double setup_s = 0;
  npb::LoopFigures loop;
  Flow error{};
  double divergence = 0;
};

// The errors are of second order; with steps of half a cell and shorter they stay below
// 6 (h^2 + dt^2).
double error_max(const Result& result) {
  return 10 * (result.h * result.h + result.dt * result.dt);
}
constexpr double divergence_limit = 1e-9;

bool verified(const Result& result) {
  const double bound = error_max(result);  // comparisons with NaN are false
  return result.error.vx < bound && result.error.vy < bound && result.error.pr < bound &&
         result.divergence < divergence_limit;
}

Result solve(const Options& options) {
  const job::Stopwatch setup_watch;
  const Grid grid = make_grid(options.n);
  Result result;
  result.h = grid.h();
  result.dt = options.dt > 0 ? options.dt : grid.h() / 8;
  State state(grid);
  Work work(grid);
  set_initial(grid, result.dt, state);
  result.setup_s = setup_watch.seconds();

  npb::State kept(options.state);
  for (const npb::Carried& array : state.carried(grid)) kept.object(array);
  result.loop = npb::run_loop(kept, options.steps, [&] { advance(grid, result.dt, state, work); });
  result.time = result.dt * static_cast<double>(options.steps);
  result.error = error_of(grid, result.time, state.vx.get(), state.vy.get(), state.pr.get());
  result.divergence = divergence_max(grid, state);
  return result;
}

void print_json(const Options& options, const Result& result, std::uint64_t arrays) {
  const nlohmann::ordered_json line{{"program", "eddy"},
                                    {"n", options.n},
                                    {"ranks", ranks::count()},
                                    {"steps", options.steps},
                                    {"dt", result.dt},
                                    {"time", result.time},
                                    {"setup_s", result.setup_s},
                                    {"iterations", options.steps},
                                    {"loop_s", result.loop.loop_s},
                                    {"persist_s", result.loop.persist_s},
                                    {"copy_s", result.loop.copy_s},
                                    {"state_bytes", result.loop.state_bytes},
                                    {"restored_iteration", result.loop.restored},
                                    {"model_ns", result.loop.model_ns},
                                    {"protection", npb::name_of(options.state.protection)},
                                    {"array_bytes", arrays},
                                    {"error_vx", result.error.vx},
                                    {"error_vy", result.error.vy},
                                    {"error_pr", result.error.pr},
                                    {"error_max", error_max(result)},
                                    {"divergence", result.divergence},
                                    {"divergence_max", divergence_limit},
                                    {"verification", verified(result) ? "verified" : "failed"}};
  std::printf("%s\n", line.dump().c_str());
}

void print_line(const char* name, double value, double limit) {
  std::printf("%-10s %.6e, %s %.1e\n", name, value, value < limit ? "below" : "WRONG: not below",
              limit);
}

void print_text(const Options& options, const Result& result, std::uint64_t arrays) {
  std::printf("eddy: %td x %td cells, %" PRIu64 " steps of %.4e to time %.4f, %d rank%s\n",
              options.n, options.n, options.steps, result.dt, result.time, ranks::count(),
              ranks::count() == 1 ? "" : "s");
  std::printf("arrays %.1f MB\n", 1e-6 * static_cast<double>(arrays));
  std::printf("setup %.3f s, steps %.3f s\n", result.setup_s, result.loop.loop_s);
  if (result.loop.restored > 0) std::printf("restored step %" PRIu64 "\n", result.loop.restored);
  const double bound = error_max(result);
  print_line("error vx", result.error.vx, bound);
  print_line("error vy", result.error.vy, bound);
  print_line("error pr", result.error.pr, bound);
  print_line("divergence", result.divergence, divergence_limit);
  std::printf("%s\n", verified(result) ? "verified" : "verification FAILED");
  if (!verified(result) && result.dt > result.h / 2) {
    std::printf("steps of more than half a cell are unstable; take --dt %.2g or less\n",
                result.h / 2);
  }
}

std::string problem_of_cells(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const long n = digits && word.size() < 6 ? std::stol(word) : 0;
  if (n >= 32 && n <= 4096 && (n & (n - 1)) == 0) return "";
  return "is " + word + "; take a power of two from 32 to 4096";
}

// Nothing if the program has to end, with `code`.
std::optional<Options> parse(int argc, char** argv, int& code) {
  Options options;
  CLI::App app("Decaying eddies in a periodic square, whose exact solution is known");
  app.footer(
      "Examples:\n"
      "  eddy                             256 x 256 cells, 100 steps\n"
      "  eddy --n 64 --steps 400 --json");
  app.add_option("--n", options.n, "cells in each direction, a power of two")
      ->check(CLI::Validator(problem_of_cells, "32 to 4096"))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "steps of time")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--dt", options.dt, "length of a step; default: an eighth of that of a cell")
      ->check(CLI::Range(1e-9, 1.0));
  app.add_flag("--json", options.json, "print one JSON object instead of a summary");
  npb::add_state_options(app, options.state);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = ranks::rank() == 0 ? app.exit(error) : error.get_exit_code();
    return std::nullopt;
  }
  return options;
}

int solve_and_report(const Options& options) {
  Result result = solve(options);
  result.setup_s = ranks::max(result.setup_s);
  result.loop.loop_s = ranks::max(result.loop.loop_s);
  result.loop.persist_s = ranks::max(result.loop.persist_s);
  result.loop.copy_s = ranks::max(result.loop.copy_s);
  result.loop.state_bytes = ranks::sum(result.loop.state_bytes);
  const std::uint64_t arrays = ranks::sum(npb::array_bytes);
  if (ranks::rank() == 0) {
    (options.json ? print_json : print_text)(options, result, arrays);
    std::fflush(stdout);
  }
  return verified(result) ? 0 : 1;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  namespace ranks = npb::ranks;
  ranks::start(argc, argv);
  int code = 0;
  try {
    const auto options = eddy::parse(argc, argv, code);
    if (options) code = eddy::solve_and_report(*options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "eddy: rank %d has too little memory; take a smaller --n\n",
                 ranks::rank());
    ranks::abort();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eddy: rank %d: %s\n", ranks::rank(), error.what());
    ranks::abort();
  }
  ranks::finish();
  return code;
}
