// SPDX-License-Identifier: BSD-3-Clause
//
// LU factorisation with partial pivoting, blocked and right-looking, of a matrix that has the right
// side as one more column; and the solution. Not for several threads.
#pragma once

#include "hpl/product.hpp"

namespace hpl {

// The system A x = b as n rows of n + 1 columns.
//
// One block of columns after the other is factorised, with row exchanges; the columns right of it
// are then exchanged, solved and updated. Afterwards the upper triangle is U and the last column is
// L^-1 P b. Rows of L in earlier blocks are not exchanged any more, since nobody reads them.
void factorise(View system, Index block, Product& product);

// Solves U x = the last column; x has n numbers. A matrix that is singular in every digit gives
// numbers that are not finite.
void solve_upper(View system, double* x);

}  // namespace hpl
