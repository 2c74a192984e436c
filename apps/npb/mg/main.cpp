// SPDX-License-Identifier: BSD-3-Clause
//
// npb_mg: V-cycles of multigrid for the discrete Poisson problem on a periodic cube (NAS Parallel
// Benchmarks, RNR-94-007, section 2.2.3). ../README.md shows how to run it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "job/stopwatch.hpp"
#include "npb/loop.hpp"
#include "npb/mg/classes.hpp"
#include "npb/mg/grid.hpp"
#include "npb/mg/multigrid.hpp"
#include "npb/program.hpp"
#include "npb/randdp.hpp"
#include "npb/ranks.hpp"

namespace npb::mg {
namespace {

constexpr std::size_t charges = 10;  // of each sign

using Place = std::pair<double, Index>;  // a random number, and the point it was drawn for

// Keeps the `charges` places that come first in an order.
template <typename Before>
void keep(std::vector<Place>& places, const Place& place, Before before) {
  if (places.size() == charges && !before(place, places.back())) return;
  places.insert(std::upper_bound(places.begin(), places.end(), place, before), place);
  if (places.size() > charges) places.pop_back();
}

void set_charges(const Grid& grid, const std::vector<Place>& places, double charge, double* v) {
  for (const auto& [number, point] : places) {
    const Index i = point % grid.n;
    const Index j = point / grid.n % grid.n;
    const Index k = point / grid.n / grid.n - grid.first_plane;
    if (k < 0 || k >= grid.planes) continue;
    v[(k + 1) * grid.plane() + (j + 1) * grid.row() + i + 1] = charge;
  }
}

// v is +1 where the largest of n^3 random numbers are, -1 where the smallest are, and 0 elsewhere.
// Each rank draws all numbers.
void make_right_side(const Grid& grid, double* v) {
  std::vector<Place> smallest, largest;
  Random random;
  for (Index point = 0; point < grid.n * grid.n * grid.n; ++point) {
    const Place place{random.next(), point};
    keep(smallest, place, std::less<>());
    keep(largest, place, std::greater<>());
  }
  std::fill(v, v + grid.size(), 0.0);
  set_charges(grid, smallest, -1, v);
  set_charges(grid, largest, 1, v);
  fill_ghosts(grid, v);
}

// The root of the mean square over all points.
double norm(const Grid& grid, const double* r) {
  double sum = 0;
  for (Index k = 1; k <= grid.planes; ++k) {
    for (Index j = 1; j <= grid.n; ++j) {
      const double* p = r + k * grid.plane() + j * grid.row();
      for (Index i = 1; i <= grid.n; ++i) sum += p[i] * p[i];
    }
  }
  const auto n = static_cast<double>(grid.n);
  return std::sqrt(ranks::sum(sum) / (n * n * n));
}

Result solve(const Options& options) {
  const ProblemClass& problem = class_of(options.problem_class);
  const job::Stopwatch setup_watch;
  const Hierarchy levels = make_hierarchy(problem.levels);
  const Grid& finest = levels.grid[static_cast<std::size_t>(levels.finest)];
  Result result = planned(options, points_text(finest.n, finest.n, finest.n),
                          static_cast<std::uint64_t>(problem.iterations));
  Array<double> u_array(levels.size, Use::object);
  Array<double> r_array(levels.size), v_array(finest.size());
  double* u = u_array.get();
  double* r = r_array.get();
  double* v = v_array.get();
  make_right_side(finest, v);
  std::fill(u, u + finest.size(), 0.0);
  result.setup_s = setup_watch.seconds();

  State state(options.state);
  state.object({"u", u, finest.size()});
  result.loop =
      run_loop(state, result.iterations, [&] { v_cycle(levels, problem.smoother, v, u, r); });
  residual(finest, u, v, r);
  result.checks = {{"residual", norm(finest, r), problem.residual_norm, tolerance}};
  return result;
}

}  // namespace
}  // namespace npb::mg

int main(int argc, char** argv) {
  const npb::Program program{
      .name = "npb_mg",
      .purpose = "MG of the NAS Parallel Benchmarks: multigrid on a periodic cube",
      .examples =
          "Examples:\n"
          "  npb_mg --class A                      verified, 4 iterations\n"
          "  npb_mg --class B --iterations 5       too few to be verified",
      .choices = {},
      .solve = npb::mg::solve};
  return npb::run_program(argc, argv, program);
}
