// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace tasks {

enum class Shape { master, divide };

struct Options {
  Shape shape = Shape::master;
  int board = 10;
  int depth = 3;
  std::string directory;
  bool json = false;
};

// Throws job::OptionsEnd; `speaks`: this rank says what is wrong.
Options parse_options(int argc, char** argv, bool speaks);
const char* name_of(Shape shape);

}  // namespace tasks
