// SPDX-License-Identifier: BSD-3-Clause
//
// The solver of FT: its arrays and one step of time. The spectrum is carried, that of the solution
// after the steps done; the solution is made anew in each.
#pragma once

#include <cstdint>
#include <vector>

#include "npb/carried.hpp"
#include "npb/ft/classes.hpp"
#include "npb/ft/transform.hpp"

namespace npb::ft {

// What a run goes on from, beside the spectrum.
struct Progress {
  std::uint64_t iteration = 0;               // that have been completed
  double checksums[iterations_max][2] = {};  // of the first iterations, real and imaginary
};

// By how much one step shrinks a wave is a product of three factors, one of each direction. Those
// along x are there twice, for the real and the imaginary part.
struct Decay {
  explicit Decay(const Transform& grid);
  Array<double> x, y, z;
};

struct Solver {
  // Collective. Sets the spectrum to that of random complex numbers.
  explicit Solver(const ProblemClass& problem);

  // Collective. One step, and its checksum.
  void iterate(Progress& progress);

  std::vector<Carried> carried() {
    return {{"spectrum", spectrum.get(), 2 * transform.spectrum_size()}};
  }

  Transform transform;
  Decay decay;
  Array<double> spectrum, solution;
};

}  // namespace npb::ft
