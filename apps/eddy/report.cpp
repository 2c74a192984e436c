// SPDX-License-Identifier: BSD-3-Clause
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "eddy/program.hpp"
#include "npb/ranks.hpp"

namespace eddy {
namespace {

namespace ranks = npb::ranks;

// The errors are of second order; with steps of half a cell and shorter they stay below
// 6 (h^2 + dt^2).
double error_max(const Result& result) {
  return 10 * (result.h * result.h + result.dt * result.dt);
}
constexpr double divergence_limit = 1e-9;

void print_line(const char* name, double value, double limit) {
  std::printf("%-10s %.6e, %s %.1e\n", name, value, value < limit ? "below" : "WRONG: not below",
              limit);
}

}  // namespace

bool verified(const Result& result) {
  const double bound = error_max(result);  // comparisons with NaN are false
  return result.error.vx < bound && result.error.vy < bound && result.error.pr < bound &&
         result.divergence < divergence_limit;
}

void print_json(const Options& options, const Result& result, std::uint64_t array_bytes) {
  const nlohmann::ordered_json line{{"program", "eddy"},
                                    {"n", options.n},
                                    {"ranks", ranks::count()},
                                    {"steps", options.steps},
                                    {"dt", result.dt},
                                    {"time", result.time},
                                    {"setup_s", result.setup_s},
                                    {"iterations", options.steps},
                                    {"open_s", result.loop.open_s},
                                    {"loop_s", result.loop.loop_s},
                                    {"loop_cpu_s", result.loop.loop_cpu_s},
                                    {"close_s", result.loop.close_s},
                                    {"persist_s", result.loop.persist_s},
                                    {"copy_s", result.loop.copy_s},
                                    {"state_bytes", result.loop.state_bytes},
                                    {"restored_iteration", result.loop.restored},
                                    {"model_ns", result.loop.model_ns},
                                    {"protection", npb::name_of(options.state.protection)},
                                    {"array_bytes", array_bytes},
                                    {"error_vx", result.error.vx},
                                    {"error_vy", result.error.vy},
                                    {"error_pr", result.error.pr},
                                    {"error_max", error_max(result)},
                                    {"divergence", result.divergence},
                                    {"divergence_max", divergence_limit},
                                    {"verification", verified(result) ? "verified" : "failed"}};
  std::printf("%s\n", line.dump().c_str());
}

void print_text(const Options& options, const Result& result, std::uint64_t array_bytes) {
  std::printf("eddy: %td x %td cells, %" PRIu64 " steps of %.4e to time %.4f, %d rank%s\n",
              options.n, options.n, options.steps, result.dt, result.time, ranks::count(),
              ranks::count() == 1 ? "" : "s");
  std::printf("arrays %.1f MB\n", 1e-6 * static_cast<double>(array_bytes));
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

}  // namespace eddy
