// SPDX-License-Identifier: BSD-3-Clause
#include "npb/ft/solver.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "npb/parallel.hpp"
#include "npb/randdp.hpp"
#include "npb/ranks.hpp"

namespace npb::ft {
namespace {

constexpr double diffusivity = 1e-6;  // and a step of time is 1

double decay_of_wave(Index at, Index n) {
  const auto wave = static_cast<double>(at < n / 2 ? at : at - n);
  return std::exp(-4 * diffusivity * std::numbers::pi * std::numbers::pi * wave * wave);
}

// Each rank draws the random numbers of its planes.
void set_initial(Solver& solver) {
  const Transform& grid = solver.transform;
  double* u = solver.solution.get();
  Random random;
  random.skip(static_cast<std::uint64_t>(2 * grid.first_z * grid.ny * grid.nx));
  for (Index at = 0; at < 2 * grid.space_size(); ++at) u[at] = random.next();
  solver.transform.to_spectrum(u);
  std::copy(u, u + 2 * grid.spectrum_size(), solver.spectrum.get());
}

// One step of time: spectrum *= decay. The solution becomes a copy, to be transformed.
void evolve(Solver& solver) {
  const Transform& grid = solver.transform;
  double* spectrum = solver.spectrum.get();
  double* copy = solver.solution.get();
  const double* decay_x = solver.decay.x.get();
  const double* decay_y = solver.decay.y.get() + grid.first_y;
  const double* decay_z = solver.decay.z.get();
  const Index rows = grid.last_y - grid.first_y;
  const Index row = 2 * grid.nx;
  NPB_PARALLEL()
  for (Index k = 0; k < grid.nz; ++k) {
    for (Index j = 0; j < rows; ++j) {
      const double decay = decay_z[k] * decay_y[j];
      const Index at = (k * rows + j) * row;
      for (Index i = 0; i < row; ++i) {
        const double value = spectrum[at + i] * (decay * decay_x[i]);
        spectrum[at + i] = value;
        copy[at + i] = value;
      }
    }
  }
}

// Collective. The sum of 1024 points, over all points.
std::complex<double> checksum(const Solver& solver) {
  const Transform& grid = solver.transform;
  const double* u = solver.solution.get();
  double re = 0, im = 0;
  for (Index j = 1; j <= 1024; ++j) {
    const Index x = j % grid.nx, y = 3 * j % grid.ny, z = 5 * j % grid.nz;
    if (z < grid.first_z || z >= grid.last_z) continue;
    const Index at = 2 * (((z - grid.first_z) * grid.ny + y) * grid.nx + x);
    re += u[at];
    im += u[at + 1];
  }
  const auto points = static_cast<double>(grid.nx * grid.ny * grid.nz);
  return {ranks::sum(re) / points, ranks::sum(im) / points};
}

}  // namespace

Decay::Decay(const Transform& grid) : x(2 * grid.nx), y(grid.ny), z(grid.nz) {
  for (Index i = 0; i < 2 * grid.nx; ++i) x.get()[i] = decay_of_wave(i / 2, grid.nx);
  for (Index j = 0; j < grid.ny; ++j) y.get()[j] = decay_of_wave(j, grid.ny);
  for (Index k = 0; k < grid.nz; ++k) z.get()[k] = decay_of_wave(k, grid.nz);
}

Solver::Solver(const ProblemClass& problem)
    : transform(problem),
      decay(transform),
      spectrum(2 * transform.spectrum_size(), Use::object),
      solution(2 * std::max(transform.space_size(), transform.spectrum_size())) {
  set_initial(*this);
}

void Solver::iterate(Progress& progress) {
  evolve(*this);
  transform.to_space(solution.get());
  const std::complex<double> sum = checksum(*this);
  if (progress.iteration < iterations_max) {
    progress.checksums[progress.iteration][0] = sum.real();
    progress.checksums[progress.iteration][1] = sum.imag();
  }
  ++progress.iteration;
}

}  // namespace npb::ft
