// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

#include "job/ending.hpp"
#include "job/stepping_command_line.hpp"

namespace plasma {

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Particles in cells, whose number changes, on any number of ranks");
  auto* const pool = job::add_pool(app, options);
  app.add_option("--cells", options.cells,
                 "N: the square has N by N cells, at least one row a rank")
      ->check(CLI::Range(2, 1 << 14));
  app.add_option("--particles", options.particles, "charges at the beginning")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30U));
  job::add_stepping(app, options, pool);
  job::parse(app, argc, argv, speaks);
  return options;
}

}  // namespace plasma
