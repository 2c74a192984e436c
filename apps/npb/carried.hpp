// SPDX-License-Identifier: BSD-3-Clause
//
// An array that a program carries from one iteration of its main loop to the next. These, and the
// number of iterations done, are what a run goes on from: everything else is set up anew, or made
// anew in each iteration.
#pragma once

#include "npb/array.hpp"

namespace npb {

struct Carried {
  const char* name;
  double* values;
  Index count;
};

}  // namespace npb
