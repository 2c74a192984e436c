// npb_ft: the heat equation on a periodic box, solved in the spectrum (NAS Parallel Benchmarks,
// RNR-94-007, section 2.2.5). ../README.md shows how to run it.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>

#include "job/stopwatch.hpp"
#include "npb/ft/classes.hpp"
#include "npb/ft/transform.hpp"
#include "npb/program.hpp"
#include "npb/randdp.hpp"
#include "npb/ranks.hpp"
#include "npb/region.hpp"

namespace npb::ft {
namespace {

constexpr double diffusivity = 1e-6;  // and a step of time is 1

// By how much one step shrinks a wave is a product of three factors, one of each direction. Those
// along x are there twice, for the real and the imaginary part.
struct Decay {
  explicit Decay(const Transform& grid) : x(2 * grid.nx), y(grid.ny), z(grid.nz) {
    for (Index i = 0; i < 2 * grid.nx; ++i) x.get()[i] = of_wave(i / 2, grid.nx);
    for (Index j = 0; j < grid.ny; ++j) y.get()[j] = of_wave(j, grid.ny);
    for (Index k = 0; k < grid.nz; ++k) z.get()[k] = of_wave(k, grid.nz);
  }

  static double of_wave(Index at, Index n) {
    const auto wave = static_cast<double>(at < n / 2 ? at : at - n);
    return std::exp(-4 * diffusivity * std::numbers::pi * std::numbers::pi * wave * wave);
  }

  Array<double> x, y, z;
};

// What a run goes on from, beside the spectrum.
struct Progress {
  std::uint64_t iteration = 0;               // that have been completed
  double checksums[iterations_max][2] = {};  // of the first iterations, real and imaginary
};

// The solver carries `spectrum`, that of the solution after the iterations done. `solution` is
// made anew in each.
struct Solver {
  explicit Solver(const ProblemClass& problem)
      : transform(problem),
        decay(transform),
        spectrum(2 * transform.spectrum_size()),
        solution(2 * std::max(transform.space_size(), transform.spectrum_size())) {}

  Transform transform;
  Decay decay;
  Array<double> spectrum, solution;
};

// Random complex numbers; each rank draws those of its planes.
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

void iterate(Solver& solver, Progress& progress) {
  evolve(solver);
  solver.transform.to_space(solver.solution.get());
  const std::complex<double> sum = checksum(solver);
  if (progress.iteration < iterations_max) {
    progress.checksums[progress.iteration][0] = sum.real();
    progress.checksums[progress.iteration][1] = sum.imag();
  }
  ++progress.iteration;
}

std::vector<Check> checks_of(const Progress& progress, const ProblemClass& problem) {
  std::vector<Check> checks;
  const std::size_t count = std::min<std::size_t>(progress.iteration, problem.checksums.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string sum = "sum " + std::to_string(i + 1);
    const std::complex<double> published = problem.checksums[i];
    checks.push_back({sum + " re", progress.checksums[i][0], published.real(), tolerance});
    checks.push_back({sum + " im", progress.checksums[i][1], published.imag(), tolerance});
  }
  return checks;
}

Result solve(const Options& options) {
  const ProblemClass& problem = class_of(options.problem_class);
  const std::uint64_t published_iterations = problem.checksums.size();
  Result result{.problem = std::to_string(problem.nx) + " x " + std::to_string(problem.ny) + " x " +
                           std::to_string(problem.nz) + " points",
                .checks = {},
                .iterations = options.iterations > 0 ? options.iterations : published_iterations,
                .published_iterations = published_iterations};
  const job::Stopwatch setup_watch;
  Solver solver(problem);
  set_initial(solver);
  result.setup_s = setup_watch.seconds();

  const job::Stopwatch loop_watch;
  Progress progress;
  mark_begin();
  while (progress.iteration < result.iterations) {
    mark_iteration(progress.iteration + 1);
    iterate(solver, progress);
  }
  mark_end();
  result.loop_s = loop_watch.seconds();
  result.checks = checks_of(progress, problem);
  return result;
}

}  // namespace
}  // namespace npb::ft

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_ft",
      .purpose = "FT of the NAS Parallel Benchmarks: the heat equation by Fourier transforms",
      .examples =
          "Examples:\n"
          "  npb_ft --class A                      verified, 6 iterations\n"
          "  npb_ft --class B --iterations 5       too few to be verified",
      .add_options = {},
      .solve = npb::ft::solve};
  return npb::run_program(argc, argv, program);
}
