// SPDX-License-Identifier: BSD-3-Clause
#include "npb/mg/multigrid.hpp"

#include <algorithm>

#include "npb/parallel.hpp"
#include "npb/ranks.hpp"

// The stencils use sums over the four points beside, and the four at the corners around, the point
// (i, ., .) in the plane across x. The rows of these sums serve all three points of a row.

namespace npb::mg {
namespace {

constexpr Index row_max = (Index{1} << levels_max) + 2;

// beside[i] and diagonal[i] for a row of a field; p points at the first point of the row.
void sums_across(const double* p, Index row, Index plane, Index count, double* beside,
                 double* diagonal) {
  for (Index i = 0; i < count; ++i) {
    beside[i] = p[i - row] + p[i + row] + p[i - plane] + p[i + plane];
    diagonal[i] = p[i - row - plane] + p[i + row - plane] + p[i - row + plane] + p[i + row + plane];
  }
}

// What lies on a row of coarse points, or between it and the one in the next plane if `next` leads
// there: on[i]; and what lies between that and the next row: beyond[i].
void sums_between(const double* p, Index row, Index next, double* on, double* beyond) {
  if (next == 0) {
    for (Index i = 0; i < row; ++i) {
      on[i] = p[i];
      beyond[i] = 0.5 * (p[i] + p[i + row]);
    }
    return;
  }
  for (Index i = 0; i < row; ++i) {
    on[i] = 0.5 * (p[i] + p[i + next]);
    beyond[i] = 0.25 * (p[i] + p[i + row] + p[i + next] + p[i + next + row]);
  }
}

}  // namespace

void residual(const Grid& grid, const double* u, const double* v, double* r) {
  double beside[row_max];
  double diagonal[row_max];
  const Index row = grid.row();
  NPB_PARALLEL(private(beside, diagonal))
  for (Index k = 1; k <= grid.planes; ++k) {
    for (Index j = 1; j <= grid.n; ++j) {
      const Index at = k * grid.plane() + j * row;
      sums_across(u + at, row, grid.plane(), row, beside, diagonal);
      // laplacian[1] is 0: the neighbours across faces are left out.
      for (Index i = 1; i <= grid.n; ++i) {
        r[at + i] = v[at + i] - laplacian[0] * u[at + i] -
                    laplacian[2] * (diagonal[i] + beside[i - 1] + beside[i + 1]) -
                    laplacian[3] * (diagonal[i - 1] + diagonal[i + 1]);
      }
    }
  }
  fill_ghosts(grid, r);
}

void smooth(const Grid& grid, const Stencil& smoother, const double* r, double* u) {
  double beside[row_max];
  double diagonal[row_max];
  const Index row = grid.row();
  NPB_PARALLEL(private(beside, diagonal))
  for (Index k = 1; k <= grid.planes; ++k) {
    for (Index j = 1; j <= grid.n; ++j) {
      const Index at = k * grid.plane() + j * row;
      sums_across(r + at, row, grid.plane(), row, beside, diagonal);
      // smoother[3] is 0: the neighbours across corners are left out.
      for (Index i = 1; i <= grid.n; ++i) {
        u[at + i] += smoother[0] * r[at + i] +
                     smoother[1] * (r[at + i - 1] + r[at + i + 1] + beside[i]) +
                     smoother[2] * (diagonal[i] + beside[i - 1] + beside[i + 1]);
      }
    }
  }
  fill_ghosts(grid, u);
}

void restrict_to(const Grid& coarse, const Grid& fine, const double* r_fine, double* r_coarse) {
  double beside[row_max];
  double diagonal[row_max];
  const bool gathers = coarse.shared && !fine.shared;
  const Index planes = fine.planes / 2;  // this rank's part of the coarse grid
  const Index offset = gathers ? fine.first_plane / 2 : 0;
  NPB_PARALLEL(private(beside, diagonal))
  for (Index k = 1; k <= planes; ++k) {
    for (Index j = 1; j <= coarse.n; ++j) {
      const double* p = r_fine + 2 * k * fine.plane() + 2 * j * fine.row();
      double* to = r_coarse + (k + offset) * coarse.plane() + j * coarse.row();
      sums_across(p, fine.row(), fine.plane(), fine.row(), beside, diagonal);
      for (Index i = 1; i <= coarse.n; ++i) {
        const Index f = 2 * i;
        to[i] = 0.5 * p[f] + 0.25 * (p[f - 1] + p[f + 1] + beside[f]) +
                0.125 * (beside[f - 1] + beside[f + 1] + diagonal[f]) +
                0.0625 * (diagonal[f - 1] + diagonal[f + 1]);
      }
    }
  }
  if (gathers) ranks::gather_blocks(r_coarse + coarse.plane(), coarse.n * coarse.plane());
  fill_ghosts(coarse, r_coarse);
}

void prolongate(const Grid& coarse, const Grid& fine, const double* u_coarse, double* u_fine) {
  // Point 2 j of the fine grid is j of the coarse, 2 j + 1 lies between j and j + 1. From j = 0 on
  // that gives all points and ghosts, so that nothing need be exchanged.
  const Index offset = coarse.shared && !fine.shared ? fine.first_plane / 2 : 0;
  const Index row = coarse.row();
  const Index plane = coarse.plane();
  double across[2][row_max];  // sums over the coarse points between which (·, j, k) lies
  NPB_PARALLEL(private(across))
  for (Index fine_k = 0; fine_k < fine.planes + 2; ++fine_k) {
    for (Index j = 0; j <= coarse.n; ++j) {
      const double* p = u_coarse + (fine_k / 2 + offset) * plane + j * row;
      sums_between(p, row, fine_k % 2 == 0 ? 0 : plane, across[0], across[1]);
      for (Index beyond = 0; beyond < 2; ++beyond) {
        double* to = u_fine + fine_k * fine.plane() + (2 * j + beyond) * fine.row();
        for (Index i = 0; i <= coarse.n; ++i) {
          to[2 * i] += across[beyond][i];
          to[2 * i + 1] += 0.5 * (across[beyond][i] + across[beyond][i + 1]);
        }
      }
    }
  }
}

void v_cycle(const Hierarchy& levels, const Stencil& smoother, const double* v, double* u,
             double* r) {
  const auto grid = [&](int level) -> const Grid& {
    return levels.grid[static_cast<std::size_t>(level)];
  };
  const auto at = [&](double* field, int level) {
    return field + levels.start[static_cast<std::size_t>(level)];
  };
  const int finest = levels.finest;
  residual(grid(finest), u, v, r);
  for (int k = finest; k > 1; --k) {
    restrict_to(grid(k - 1), grid(k), at(r, k), at(r, k - 1));
  }
  std::fill(at(u, 1), at(u, 1) + grid(1).size(), 0.0);
  smooth(grid(1), smoother, at(r, 1), at(u, 1));
  for (int k = 2; k < finest; ++k) {
    std::fill(at(u, k), at(u, k) + grid(k).size(), 0.0);
    prolongate(grid(k - 1), grid(k), at(u, k - 1), at(u, k));
    residual(grid(k), at(u, k), at(r, k), at(r, k));
    smooth(grid(k), smoother, at(r, k), at(u, k));
  }
  prolongate(grid(finest - 1), grid(finest), at(u, finest - 1), u);
  residual(grid(finest), u, v, r);
  smooth(grid(finest), smoother, r, u);
}

}  // namespace npb::mg
