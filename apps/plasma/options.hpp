// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace plasma {

struct Options {
  int cells = 64;
  std::uint64_t particles = 10000;
  std::uint64_t steps = 200;
  std::uint64_t every = 1;
  std::string pool;  // empty: nothing is kept
  bool json = false;
};

// Throws job::OptionsEnd; `speaks`: this rank says what is wrong.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace plasma
