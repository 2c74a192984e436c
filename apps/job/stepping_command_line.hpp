// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include "job/stepping_options.hpp"

namespace job {

// --pool before the program's own options, the others after them.
inline CLI::Option* add_pool(CLI::App& app, Stepping& options) {
  auto* pool = app.add_option("--pool", options.pool, "directory of the pool; default: none");
  app.option_defaults()->always_capture_default();
  return pool;
}

inline void add_stepping(CLI::App& app, Stepping& options, CLI::Option* pool) {
  app.add_option("--steps", options.steps, "number of steps");
  app.add_option("--every", options.every, "commit each N steps")
      ->check(CLI::PositiveNumber)
      ->needs(pool);
  app.add_flag("--json", options.json, "print facts, as lines of JSON, instead of a summary");
}

}  // namespace job
