// SPDX-License-Identifier: BSD-3-Clause
#include "npb/lu/surface.hpp"

#include <algorithm>

#include "npb/ranks.hpp"

namespace npb::lu {
namespace {

using flow::Flow;

struct Edge {
  Index from, to;
  bool ends(Index at) const { return at == from || at == to; }
  double weight(Index at) const { return ends(at) ? 0.5 : 1; }
};

double pressure(const Flow& flow, Index at) {
  const double* u = flow.u.get() + 5 * at;
  return flow::c2 * (u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0]);
}

}  // namespace

double surface_integral(const Flow& flow) {
  const Edge x{1, flow.n - 2}, y{1, flow.n - 3}, z{2, flow.n - 2};
  double sum = 0;
  for (Index k = std::max(z.from, flow.first); k <= std::min(z.to, flow.last - 1); ++k) {
    for (Index j = y.from; j <= y.to; ++j) {
      for (Index i = x.from; i <= x.to; ++i) {
        double weight = 0;
        if (x.ends(i)) weight += y.weight(j) * z.weight(k);
        if (y.ends(j)) weight += x.weight(i) * z.weight(k);
        if (z.ends(k)) weight += x.weight(i) * y.weight(j);
        if (weight > 0) sum += weight * pressure(flow, flow.point(i, j, k));
      }
    }
  }
  const double h = 1 / static_cast<double>(flow.n - 1);
  return h * h * ranks::sum(sum);
}

}  // namespace npb::lu
