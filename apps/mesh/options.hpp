// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace mesh {

struct Options {
  int levels = 4;
  std::uint64_t steps = 200;
  std::uint64_t adapt = 4;
  std::uint64_t every = 1;
  std::string pool;  // empty: nothing is kept
  bool json = false;
};

// Throws job::OptionsEnd; `speaks`: this rank says what is wrong.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace mesh
