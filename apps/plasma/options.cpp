// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include "job/ending.hpp"
#include "job/run.hpp"

namespace plasma {

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Particles in cells, whose number changes, on any number of ranks");
  auto* pool = app.add_option("--pool", options.pool, "directory of the pool; default: none");
  app.option_defaults()->always_capture_default();
  app.add_option("--cells", options.cells,
                 "N: the square has N by N cells, at least one row a rank")
      ->check(CLI::Range(2, 1 << 14));
  app.add_option("--particles", options.particles, "charges at the beginning")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30U));
  app.add_option("--steps", options.steps, "number of steps");
  app.add_option("--every", options.every, "commit each N steps")
      ->check(CLI::PositiveNumber)
      ->needs(pool);
  app.add_flag("--json", options.json, "print facts, as lines of JSON, instead of a summary");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw job::OptionsEnd{job::ended_at(app, error, speaks)};
  }
  return options;
}

}  // namespace plasma
