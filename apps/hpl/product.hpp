// SPDX-License-Identifier: BSD-3-Clause
//
// C = C - A B for matrices stored by columns: nearly all of the work of a factorisation. Blocks of
// A and B are copied to buffers in the order in which a kernel for a small tile of C, which stays
// in registers, reads them (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008). Not for several threads: one Product each.
#pragma once

#include "npb/array.hpp"

namespace hpl {

using npb::Array;
using npb::Index;

// The first of `rows` x `columns` numbers; those of a column are adjacent, and column j + 1 begins
// `stride` numbers after column j.
struct View {
  double* first = nullptr;
  Index rows = 0, columns = 0, stride = 0;

  double* at(Index i, Index j) const { return first + i + j * stride; }
  View part(Index i, Index j, Index part_rows, Index part_columns) const {
    return {at(i, j), part_rows, part_columns, stride};
  }
};

// A tile of C: c -= a b over `depth`, a of `rows` and b of `columns` numbers at each step.
struct Kernel {
  const char* name;
  Index rows, columns;
  void (*run)(Index depth, const double* a, const double* b, double* c, Index c_stride);
};

const Kernel& portable_kernel();
const Kernel& best_kernel();  // of those that this processor can run

class Product {
 public:
  explicit Product(const Kernel& kernel);

  // A has as many columns as B has rows. No two of them overlap.
  void subtract(View a, View b, View c);

 private:
  void pack_a(View a);
  void pack_b(View b);
  void subtract_block(View c, Index depth);

  Kernel kernel_;
  Array<double> a_, b_, tile_;
};

}  // namespace hpl
