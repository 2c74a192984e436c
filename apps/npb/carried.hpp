// An array that a program carries from one iteration of its main loop to the next. Together with
// the Progress of the program these are what a run goes on from: everything else is set up anew, or
// made anew in each iteration.
#pragma once

#include "npb/array.hpp"

namespace npb {

struct Carried {
  const char* name;
  double* values;
  Index count;
};

}  // namespace npb
