// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "job/stepping_options.hpp"

namespace mesh {

struct Options : job::Stepping {
  int levels = 4;
  std::uint64_t adapt = 4;
};

// Throws job::OptionsEnd; `speaks`: this rank says what is wrong.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace mesh
