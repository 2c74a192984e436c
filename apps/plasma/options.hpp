// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "job/stepping_options.hpp"

namespace plasma {

struct Options : job::Stepping {
  int cells = 64;
  std::uint64_t particles = 10000;
};

// Throws job::OptionsEnd; `speaks`: this rank says what is wrong.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace plasma
