// SPDX-License-Identifier: BSD-3-Clause
//
// The random system of HPL, and its test of a solution. The system is drawn again for the test, so
// that it needs no second matrix.
#pragma once

#include <cstdint>

#include "hpl/product.hpp"

namespace hpl {

// n rows of n + 1 columns, drawn column by column from -1/2 to 1/2.
void draw_system(View system, std::uint64_t seed);

// ||A x - b|| / (eps (||A|| ||x|| + ||b||) n) with maximum norms and eps = 2^-53, for the system of
// a seed: the scaled residual of HPL 2.
double scaled_residual(Index n, std::uint64_t seed, const double* x);

constexpr double residual_max = 16;  // a solution passes below

// False for what is not a number.
bool passes(double residual);

}  // namespace hpl
