// SPDX-License-Identifier: BSD-3-Clause
//
// Vector kernels, block by block. A block is small enough for the first-level cache, so that a
// result can be made there and then stored wherever the state needs it. Sums are added in an order
// that depends on the number of points only: every mode gives the same bits.
#pragma once

#include <cstddef>

namespace hpccg {

constexpr std::size_t block_points = 1024;

// out = in + factor * direction. `out` may be `in` or `direction`.
void add_scaled(std::size_t count, const double* in, double factor, const double* direction,
                double* out);

double dot_block(std::size_t count, const double* a, const double* b);

// By blocks of block_points, as the solver's own loops.
double dot(std::size_t count, const double* a, const double* b);

}  // namespace hpccg
