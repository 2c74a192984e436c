// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <string>

#include "eddy/program.hpp"
#include "job/ending.hpp"
#include "npb/ranks.hpp"

namespace eddy {
namespace {

namespace ranks = npb::ranks;

std::string problem_of_cells(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const long n = digits && word.size() < 6 ? std::stol(word) : 0;
  if (n >= 32 && n <= 4096 && (n & (n - 1)) == 0) return "";
  return "is " + word + "; take a power of two from 32 to 4096";
}

}  // namespace

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
    code = job::ended_at(app, error, ranks::rank() == 0);
    return std::nullopt;
  }
  return options;
}

}  // namespace eddy
