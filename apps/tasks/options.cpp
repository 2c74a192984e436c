// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "job/choices.hpp"
#include "job/ending.hpp"
#include "job/run.hpp"
#include "queens.hpp"

namespace tasks {
namespace {

const std::map<std::string, Shape> shapes{{"master", Shape::master}, {"divide", Shape::divide}};

}  // namespace

const char* name_of(Shape shape) {
  return job::name_in(shapes, shape);
}

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Queens on a board, by tasks that are finished for good in any order");
  app.add_option("--directory", options.directory, "where each rank has its pool")->required();
  app.option_defaults()->always_capture_default();
  job::add_choice(app, "--shape", options.shape, shapes,
                  "rank 0 hands out tasks, or each rank divides its own and steals from others");
  app.add_option("--board", options.board, "N: as many queens, and N by N fields")
      ->check(CLI::Range(1, board_max));
  app.add_option("--depth", options.depth, "queens that are placed in a task that is not divided")
      ->check(CLI::Range(1, board_max));
  app.add_flag("--json", options.json, "print facts, as lines of JSON, instead of a summary");
  try {
    app.parse(argc, argv);
    if (options.depth > options.board)
      throw CLI::ValidationError("--depth", "is larger than --board");
  } catch (const CLI::ParseError& error) {
    throw job::OptionsEnd{job::ended_at(app, error, speaks)};
  }
  return options;
}

}  // namespace tasks
