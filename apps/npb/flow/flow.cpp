// SPDX-License-Identifier: BSD-3-Clause
#include "npb/flow/flow.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "npb/parallel.hpp"
#include "npb/ranks.hpp"

namespace npb::flow {
namespace {

// Coefficients of the exact solution (RNR-94-007, section 3.1): of 1, then of x, y, z, of their
// squares, cubes and fourth powers.
constexpr double exact_coefficients[5][13] = {
    {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2}};

Five exact(double x, double y, double z) {
  const double at[3] = {x, y, z};
  Five u;
  for (std::size_t m = 0; m < 5; ++m) {
    const double* c = exact_coefficients[m];
    u[m] = c[0];
    for (int axis = 0; axis < 3; ++axis) {
      const double s = at[axis];
      u[m] += s * (c[1 + axis] + s * (c[4 + axis] + s * (c[7 + axis] + s * c[10 + axis])));
    }
  }
  return u;
}

// The planes of the arrays that lie in the cube.
Index lowest_plane(const Flow& flow) {
  return std::max<Index>(flow.base, 0);
}
Index end_plane(const Flow& flow) {
  return std::min<Index>(flow.base + flow.planes, flow.n);
}

// Calls use(i, j, k, x, y, z) for all points of the planes.
template <typename Use>
void for_points(const Flow& flow, Index from_plane, Index to_plane, Use use) {
  const double h = 1 / static_cast<double>(flow.n - 1);
  for (Index k = from_plane; k < to_plane; ++k) {
    for (Index j = 0; j < flow.n; ++j) {
      for (Index i = 0; i < flow.n; ++i) {
        use(i, j, k, static_cast<double>(i) * h, static_cast<double>(j) * h,
            static_cast<double>(k) * h);
      }
    }
  }
}

void set_exact(Flow& flow) {
  for_points(flow, lowest_plane(flow), end_plane(flow),
             [&](Index i, Index j, Index k, double x, double y, double z) {
               const Five u = exact(x, y, z);
               std::copy(u.begin(), u.end(), flow.u.get() + 5 * flow.point(i, j, k));
             });
}

// The initial values off the boundary, from the exact ones on the six faces. The benchmark has the
// products of interpolated values here, where transfinite interpolation has values at edges and
// corners: the flow starts far from the exact one.
Five blend(double x, double y, double z) {
  const Five x0 = exact(0, y, z), x1 = exact(1, y, z);
  const Five y0 = exact(x, 0, z), y1 = exact(x, 1, z);
  const Five z0 = exact(x, y, 0), z1 = exact(x, y, 1);
  Five u;
  for (std::size_t m = 0; m < 5; ++m) {
    const double a = x * x1[m] + (1 - x) * x0[m];
    const double b = y * y1[m] + (1 - y) * y0[m];
    const double c = z * z1[m] + (1 - z) * z0[m];
    u[m] = a + b + c - a * b - a * c - b * c + a * b * c;
  }
  return u;
}

void set_initial(Flow& flow) {
  const auto on_face = [&](Index at) { return at == 0 || at == flow.n - 1; };
  for_points(flow, lowest_plane(flow), end_plane(flow),
             [&](Index i, Index j, Index k, double x, double y, double z) {
               const bool face = on_face(i) || on_face(j) || on_face(k);
               const Five u = face ? exact(x, y, z) : blend(x, y, z);
               std::copy(u.begin(), u.end(), flow.u.get() + 5 * flow.point(i, j, k));
             });
}

void set_zero(double* numbers, Index count) {
  std::fill(numbers, numbers + count, 0.0);
}

Flow allocate(const ProblemClass& problem, Speed speed) {
  const int ranks = ranks::count();
  if (problem.n < 2 * ranks) {
    throw std::runtime_error("can't cut " + std::to_string(problem.n) + " planes into " +
                             std::to_string(ranks) + " slabs of two or more; use at most " +
                             std::to_string(problem.n / 2) + " ranks");
  }
  Flow flow;
  flow.n = problem.n;
  flow.dt = problem.dt;
  flow.first = ranks::block_begin(flow.n, ranks::rank());
  flow.last = ranks::block_begin(flow.n, ranks::rank() + 1);
  const Index ghosts = ranks > 1 ? 2 : 0;
  flow.base = flow.first - ghosts;
  flow.planes = flow.last - flow.first + 2 * ghosts;
  const Index points = flow.points();
  flow.u = Array<double>(5 * points, Use::object);
  for (Array<double>* five : {&flow.rhs, &flow.forcing}) *five = Array<double>(5 * points);
  for (Array<double>* one :
       {&flow.rho_inverse, &flow.us, &flow.vs, &flow.ws, &flow.square, &flow.qs}) {
    *one = Array<double>(points);
  }
  if (speed == Speed::derived) flow.speed = Array<double>(points);
  set_zero(flow.rhs.get(), 5 * points);
  set_zero(flow.forcing.get(), 5 * points);
  return flow;
}

template <typename Difference>
Five root_mean_square(const Flow& flow, Index from_plane, Index to_plane, Difference difference) {
  Five sums{};
  for_points(flow, from_plane, to_plane,
             [&](Index i, Index j, Index k, double x, double y, double z) {
               const Five d = difference(flow.point(i, j, k), x, y, z);
               for (std::size_t m = 0; m < 5; ++m) sums[m] += d[m] * d[m];
             });
  const auto inner = static_cast<double>(flow.n - 2);
  for (double& sum : sums) sum = std::sqrt(ranks::sum(sum) / (inner * inner * inner));
  return sums;
}

}  // namespace

Flow make_flow(const ProblemClass& problem, Speed speed) {
  Flow flow = allocate(problem, speed);
  set_exact(flow);
  compute_residual(flow);  // the forcing is still 0
  const Index from = 5 * flow.point(0, 0, flow.first);
  const Index to = 5 * flow.point(0, 0, flow.last);
  for (Index at = from; at < to; ++at) flow.forcing.get()[at] = -flow.rhs.get()[at];
  set_initial(flow);
  return flow;
}

void fill_ghosts(Flow& flow) {
  if (ranks::count() == 1) return;
  const Index two_planes = 2 * 5 * flow.n * flow.n;
  double* first = flow.u.get() + 5 * flow.point(0, 0, flow.first);
  double* last = flow.u.get() + 5 * flow.point(0, 0, flow.last);
  ranks::swap_with_neighbours(first, last - two_planes, first - two_planes, last, two_planes);
}

void add_change(Flow& flow, double factor) {
  double* u = flow.u.get();
  const double* rhs = flow.rhs.get();
  const Index last = flow.inner_last(), n = flow.n;
  NPB_PARALLEL()
  for (Index k = flow.inner_first(); k < last; ++k) {
    for (Index j = 1; j < n - 1; ++j) {
      const Index from = 5 * flow.point(1, j, k);
      const Index to = from + 5 * (n - 2);
      for (Index at = from; at < to; ++at) u[at] += factor * rhs[at];
    }
  }
}

Five residual_norm(const Flow& flow) {
  const double* rhs = flow.rhs.get();
  return root_mean_square(flow, flow.first, flow.last, [&](Index at, double, double, double) {
    Five residual;
    std::copy(rhs + 5 * at, rhs + 5 * at + 5, residual.begin());
    return residual;
  });
}

Five error_norm(const Flow& flow) {
  const double* u = flow.u.get();
  return root_mean_square(flow, flow.first, flow.last, [&](Index at, double x, double y, double z) {
    Five error = exact(x, y, z);
    for (std::size_t m = 0; m < 5; ++m) error[m] -= u[5 * at + static_cast<Index>(m)];
    return error;
  });
}

}  // namespace npb::flow
