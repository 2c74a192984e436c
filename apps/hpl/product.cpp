// SPDX-License-Identifier: BSD-3-Clause
#include "hpl/product.hpp"

#include <algorithm>

namespace hpl {
namespace {

constexpr Index depth_max = 256;    // of a block of A and B
constexpr Index rows_max = 192;     // of a block of A: 384 KiB, to stay in the second-level cache
constexpr Index columns_max = 768;  // of a block of B: 1.5 MiB

// A tile of `vectors` vectors by `columns`. The compiler unrolls the inner loops and keeps the sums
// in registers.
template <typename Part, std::size_t vectors, std::size_t columns>
[[gnu::always_inline]] inline void tile(Index depth, const double* a, const double* b, double* c,
                                        Index c_stride) {
  using Vector = typename Part::Vector;
  constexpr std::size_t width = sizeof(Vector) / sizeof(double);
  Vector sum[columns][vectors] = {};
  for (Index k = 0; k < depth; ++k, a += vectors * width, b += columns) {
    const Vector* left = reinterpret_cast<const Vector*>(a);
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t v = 0; v < vectors; ++v) sum[j][v] += left[v] * b[j];
    }
  }
  for (std::size_t j = 0; j < columns; ++j, c += c_stride) {
    Vector* to = reinterpret_cast<Vector*>(c);
    for (std::size_t v = 0; v < vectors; ++v) to[v] -= sum[j][v];
  }
}

// Vectors that may lie at any double, and over doubles. A template would lose these attributes of a
// type that is its argument, so it gets a struct.
struct TwoDoubles {
  using Vector [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = double;
};

void run_portable(Index depth, const double* a, const double* b, double* c, Index c_stride) {
  tile<TwoDoubles, 2, 4>(depth, a, b, c, c_stride);
}

constexpr Kernel portable{"portable, 4 x 4", 4, 4, run_portable};

#ifdef __x86_64__
struct FourDoubles {
  using Vector [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
};

[[gnu::target("avx2,fma")]] void run_avx2(Index depth, const double* a, const double* b, double* c,
                                          Index c_stride) {
  tile<FourDoubles, 2, 6>(depth, a, b, c, c_stride);
}

constexpr Kernel avx2{"AVX2, 8 x 6", 8, 6, run_avx2};
#endif

Index round_up(Index count, Index to) {
  return (count + to - 1) / to * to;
}

}  // namespace

const Kernel& portable_kernel() {
  return portable;
}

const Kernel& best_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return portable;
}

Product::Product(const Kernel& kernel)
    : kernel_(kernel),
      a_(round_up(rows_max, kernel.rows) * depth_max),
      b_(round_up(columns_max, kernel.columns) * depth_max),
      tile_(kernel.rows * kernel.columns) {}

// Strips of as many rows as a tile has; the last is filled up with zeros.
void Product::pack_a(View a) {
  double* to = a_.get();
  for (Index i = 0; i < a.rows; i += kernel_.rows) {
    const Index rows = std::min(kernel_.rows, a.rows - i);
    for (Index k = 0; k < a.columns; ++k, to += kernel_.rows) {
      std::copy(a.at(i, k), a.at(i, k) + rows, to);
      std::fill(to + rows, to + kernel_.rows, 0.0);
    }
  }
}

// Strips of as many columns as a tile has.
void Product::pack_b(View b) {
  double* to = b_.get();
  for (Index j = 0; j < b.columns; j += kernel_.columns) {
    const Index columns = std::min(kernel_.columns, b.columns - j);
    for (Index k = 0; k < b.rows; ++k, to += kernel_.columns) {
      for (Index c = 0; c < columns; ++c) to[c] = *b.at(k, j + c);
      std::fill(to + columns, to + kernel_.columns, 0.0);
    }
  }
}

// C minus the product of the two packed blocks. A tile that C has only in part is computed whole,
// beside it.
void Product::subtract_block(View c, Index depth) {
  for (Index j = 0; j < c.columns; j += kernel_.columns) {
    const double* b = b_.get() + j * depth;
    const Index columns = std::min(kernel_.columns, c.columns - j);
    for (Index i = 0; i < c.rows; i += kernel_.rows) {
      const double* a = a_.get() + i * depth;
      const Index rows = std::min(kernel_.rows, c.rows - i);
      if (rows == kernel_.rows && columns == kernel_.columns) {
        kernel_.run(depth, a, b, c.at(i, j), c.stride);
        continue;
      }
      double* tile = tile_.get();
      std::fill(tile, tile + kernel_.rows * kernel_.columns, 0.0);
      kernel_.run(depth, a, b, tile, kernel_.rows);
      for (Index q = 0; q < columns; ++q) {
        for (Index p = 0; p < rows; ++p) *c.at(i + p, j + q) += tile[p + q * kernel_.rows];
      }
    }
  }
}

void Product::subtract(View a, View b, View c) {
  for (Index k = 0; k < a.columns; k += depth_max) {
    const Index depth = std::min(depth_max, a.columns - k);
    for (Index j = 0; j < c.columns; j += columns_max) {
      const Index columns = std::min(columns_max, c.columns - j);
      pack_b(b.part(k, j, depth, columns));
      for (Index i = 0; i < c.rows; i += rows_max) {
        const Index rows = std::min(rows_max, c.rows - i);
        pack_a(a.part(i, k, rows, depth));
        subtract_block(c.part(i, j, rows, columns), depth);
      }
    }
  }
}

}  // namespace hpl
