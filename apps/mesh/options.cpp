// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include "job/ending.hpp"
#include "job/stepping_command_line.hpp"
#include "tree.hpp"

namespace mesh {

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Heat on a mesh of blocks, whose number changes, on any number of ranks");
  auto* const pool = job::add_pool(app, options);
  app.add_option("--levels", options.levels, "how often a block may be divided")
      ->check(CLI::Range(0, levels_max));
  app.add_option("--adapt", options.adapt, "divide blocks and put them together each N steps")
      ->check(CLI::PositiveNumber);
  job::add_stepping(app, options, pool);
  job::parse(app, argc, argv, speaks);
  return options;
}

}  // namespace mesh
