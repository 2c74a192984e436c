// SPDX-License-Identifier: BSD-3-Clause
//
// The three-dimensional transform of FT on slabs. Complex numbers are two doubles, x is fastest.
//
// In space a rank has planes along z: [z][y][x] with all y. The spectrum is cut along y: [z][y][x]
// with all z, so that what is sent to a rank, a range of z, is contiguous. With one rank the two
// are the same.
#pragma once

#include <vector>

#include "npb/array.hpp"
#include "npb/fft.hpp"
#include "npb/ft/classes.hpp"

namespace npb::ft {

class Transform {
 public:
  // Throws std::runtime_error if there are more ranks than planes.
  explicit Transform(const ProblemClass& problem);

  // Collective. In place: `values` has max(space_size, spectrum_size) complex numbers.
  void to_spectrum(double* values);
  void to_space(double* values);  // times nx ny nz

  Index nx, ny, nz;
  Index first_z, last_z;  // of this rank in space
  Index first_y, last_y;  // and in the spectrum
  Index space_size() const { return (last_z - first_z) * ny * nx; }
  Index spectrum_size() const { return nz * (last_y - first_y) * nx; }

 private:
  void transform_planes(Direction direction, double* values);
  void transform_z(Direction direction, double* values);
  template <typename Copy>
  void for_parts(Copy copy);

  Fft along_x_, along_y_, along_z_;
  Array<double> messages_;                             // if there are several ranks
  std::vector<Index> spectrum_counts_, space_counts_;  // of doubles, by rank
};

}  // namespace npb::ft
