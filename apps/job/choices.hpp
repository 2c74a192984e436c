// SPDX-License-Identifier: BSD-3-Clause
//
// Choices: options of the command line whose value is one of several names.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace job {

template <typename T>
const char* name_in(const std::map<std::string, T>& names, T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name.c_str();
  }
  return "?";
}

// `value` is the default.
template <typename T>
void add_choice(CLI::App& app, const char* flag, T& value, const std::map<std::string, T>& names,
                const std::string& text) {
  app.add_option(flag, value, text)
      ->transform(CLI::CheckedTransformer(names, CLI::ignore_case))
      ->default_str(name_in(names, value));
}

}  // namespace job
