// SPDX-License-Identifier: BSD-3-Clause
//
// How an application ends at its command line: as the verbs of `perdure` do (docs/cli.md, "Messages
// and exit codes"), where CLI11 has a code from 100 on for each kind of mistake.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "job/run.hpp"

namespace job {

constexpr int mistake = 2;

// The exit code, after what is to be said: help or version asked for, or one line and a remedy.
inline int ended_at(const CLI::App& app, const CLI::ParseError& error, bool speaks) {
  if (error.get_exit_code() == 0) return speaks ? app.exit(error) : 0;
  if (speaks) {
    const std::string name = std::filesystem::path(app.get_name()).filename();
    std::fprintf(stderr, "%s: %s (--help shows the options)\n", name.c_str(), error.what());
  }
  return mistake;
}

// Throws OptionsEnd.
inline void parse(CLI::App& app, int argc, char** argv, bool speaks) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw OptionsEnd{ended_at(app, error, speaks)};
  }
}

}  // namespace job
