// SPDX-License-Identifier: BSD-3-Clause
//
// One V-cycle of multigrid for A u = v, and its four operators (RNR-94-007, section 2.2.3).
// Collective. Fields have their ghosts filled, before and after.
#pragma once

#include "npb/mg/classes.hpp"
#include "npb/mg/grid.hpp"

namespace npb::mg {

// r = v - A u on one grid. v may be r.
void residual(const Grid& grid, const double* u, const double* v, double* r);

// u = u + S r on one grid, with the smoother S.
void smooth(const Grid& grid, const Stencil& smoother, const double* r, double* u);

// r_coarse = P r_fine: the mean with full weights. Point j of the coarse grid is 2 j of the fine.
void restrict_to(const Grid& coarse, const Grid& fine, const double* r_fine, double* r_coarse);

// u_fine = u_fine + Q u_coarse: trilinear.
void prolongate(const Grid& coarse, const Grid& fine, const double* u_coarse, double* u_fine);

// r = v - A u and u = u + M^k r on the finest grid: one iteration of the benchmark, which leaves
// the residual to the next one, so that u is all that it hands on. u and r have all levels, v has
// the finest.
void v_cycle(const Hierarchy& levels, const Stencil& smoother, const double* v, double* u,
             double* r);

}  // namespace npb::mg
