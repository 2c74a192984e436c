// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include "job/ending.hpp"
#include "job/run.hpp"
#include "tree.hpp"

namespace mesh {

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Heat on a mesh of blocks, whose number changes, on any number of ranks");
  auto* pool = app.add_option("--pool", options.pool, "directory of the pool; default: none");
  app.option_defaults()->always_capture_default();
  app.add_option("--levels", options.levels, "how often a block may be divided")
      ->check(CLI::Range(0, levels_max));
  app.add_option("--steps", options.steps, "number of steps");
  app.add_option("--adapt", options.adapt, "divide blocks and put them together each N steps")
      ->check(CLI::PositiveNumber);
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

}  // namespace mesh
