// SPDX-License-Identifier: BSD-3-Clause
#include "npb/ft/transform.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "npb/ranks.hpp"

namespace npb::ft {

Transform::Transform(const ProblemClass& problem)
    : nx(problem.nx),
      ny(problem.ny),
      nz(problem.nz),
      first_z(ranks::block_begin(nz, ranks::rank())),
      last_z(ranks::block_begin(nz, ranks::rank() + 1)),
      first_y(ranks::block_begin(ny, ranks::rank())),
      last_y(ranks::block_begin(ny, ranks::rank() + 1)),
      along_x_(nx),
      along_y_(ny),
      along_z_(nz) {
  const Index ranks = ranks::count();
  const Index ranks_max = std::min(ny, nz);
  if (ranks > ranks_max) {
    throw std::runtime_error("can't cut " + std::to_string(ranks_max) + " planes into " +
                             std::to_string(ranks) + " slabs; use at most " +
                             std::to_string(ranks_max) + " ranks");
  }
  if (ranks == 1) return;
  messages_ = Array<double>(2 * std::max(space_size(), spectrum_size()));
  for (int r = 0; r < ranks; ++r) {
    const Index z_of_rank = ranks::block_begin(nz, r + 1) - ranks::block_begin(nz, r);
    const Index y_of_rank = ranks::block_begin(ny, r + 1) - ranks::block_begin(ny, r);
    spectrum_counts_.push_back(2 * z_of_rank * (last_y - first_y) * nx);
    space_counts_.push_back(2 * (last_z - first_z) * y_of_rank * nx);
  }
}

void Transform::transform_planes(Direction direction, double* values) {
  for (Index k = 0; k < last_z - first_z; ++k) {
    double* plane = values + 2 * k * ny * nx;
    along_x_.transform(direction, plane, {ny, nx, 1});
    along_y_.transform(direction, plane, {nx, 1, nx});
  }
}

void Transform::transform_z(Direction direction, double* values) {
  const Index lines = (last_y - first_y) * nx;
  along_z_.transform(direction, values, {lines, 1, lines});
}

// Messages have the parts [z][y of the rank][x] of a rank's values in space, one rank after the
// other. Calls copy(place in the messages, place in space, count) for each piece that is
// contiguous in both.
template <typename Copy>
void Transform::for_parts(Copy copy) {
  double* message = messages_.get();
  for (int r = 0; r < ranks::count(); ++r) {
    const Index from_y = ranks::block_begin(ny, r);
    const Index count = 2 * (ranks::block_begin(ny, r + 1) - from_y) * nx;
    for (Index k = 0; k < last_z - first_z; ++k) {
      copy(message, 2 * (k * ny + from_y) * nx, count);
      message += count;
    }
  }
}

void Transform::to_spectrum(double* values) {
  transform_planes(Direction::forward, values);
  if (ranks::count() > 1) {
    for_parts([&](double* message, Index at, Index count) {
      std::copy(values + at, values + at + count, message);
    });
    ranks::exchange(messages_.get(), space_counts_, values, spectrum_counts_);
  }
  transform_z(Direction::forward, values);
}

void Transform::to_space(double* values) {
  transform_z(Direction::backward, values);
  if (ranks::count() > 1) {
    ranks::exchange(values, spectrum_counts_, messages_.get(), space_counts_);
    for_parts([&](const double* message, Index at, Index count) {
      std::copy(message, message + count, values + at);
    });
  }
  transform_planes(Direction::backward, values);
}

}  // namespace npb::ft
