// SPDX-License-Identifier: BSD-3-Clause
#include "npb/fft.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace npb {
namespace {

// Element i of line l is at [i * width + l].
void load(const double* values, const Lines& lines, Index n, Index width, double* re, double* im) {
  if (lines.stride < lines.apart) {
    for (Index l = 0; l < width; ++l) {
      const double* line = values + 2 * l * lines.apart;
      for (Index i = 0; i < n; ++i) {
        re[i * width + l] = line[2 * i * lines.stride];
        im[i * width + l] = line[2 * i * lines.stride + 1];
      }
    }
    return;
  }
  for (Index i = 0; i < n; ++i) {
    const double* element = values + 2 * i * lines.stride;
    for (Index l = 0; l < width; ++l) {
      re[i * width + l] = element[2 * l * lines.apart];
      im[i * width + l] = element[2 * l * lines.apart + 1];
    }
  }
}

void store(const double* re, const double* im, Index n, Index width, const Lines& lines,
           double* values) {
  if (lines.stride < lines.apart) {
    for (Index l = 0; l < width; ++l) {
      double* line = values + 2 * l * lines.apart;
      for (Index i = 0; i < n; ++i) {
        line[2 * i * lines.stride] = re[i * width + l];
        line[2 * i * lines.stride + 1] = im[i * width + l];
      }
    }
    return;
  }
  for (Index i = 0; i < n; ++i) {
    double* element = values + 2 * i * lines.stride;
    for (Index l = 0; l < width; ++l) {
      element[2 * l * lines.apart] = re[i * width + l];
      element[2 * l * lines.apart + 1] = im[i * width + l];
    }
  }
}

struct Root {
  double re, im;
};

// One butterfly of radix 4 for `width` lines: inputs are `apart` numbers apart, outputs `width`.
void butterfly(const double* __restrict in_re, const double* __restrict in_im, Index apart,
               double* __restrict out_re, double* __restrict out_im, Index width,
               const Root (&w)[3]) {
  for (Index q = 0; q < width; ++q) {
    const double even_re = in_re[q] + in_re[q + 2 * apart];
    const double even_im = in_im[q] + in_im[q + 2 * apart];
    const double even_less_re = in_re[q] - in_re[q + 2 * apart];
    const double even_less_im = in_im[q] - in_im[q + 2 * apart];
    const double odd_re = in_re[q + apart] + in_re[q + 3 * apart];
    const double odd_im = in_im[q + apart] + in_im[q + 3 * apart];
    const double odd_less_re = in_re[q + apart] - in_re[q + 3 * apart];
    const double odd_less_im = in_im[q + apart] - in_im[q + 3 * apart];
    const double re1 = even_less_re + odd_less_im, im1 = even_less_im - odd_less_re;
    const double re2 = even_re - odd_re, im2 = even_im - odd_im;
    const double re3 = even_less_re - odd_less_im, im3 = even_less_im + odd_less_re;
    out_re[q] = even_re + odd_re;
    out_im[q] = even_im + odd_im;
    out_re[q + width] = w[0].re * re1 - w[0].im * im1;
    out_im[q + width] = w[0].re * im1 + w[0].im * re1;
    out_re[q + 2 * width] = w[1].re * re2 - w[1].im * im2;
    out_im[q + 2 * width] = w[1].re * im2 + w[1].im * re2;
    out_re[q + 3 * width] = w[2].re * re3 - w[2].im * im3;
    out_im[q + 3 * width] = w[2].re * im3 + w[2].im * re3;
  }
}

// The last pass of a length that is no power of four: radix 2, without roots of unity.
void add_and_subtract(const double* __restrict in, Index width, double* __restrict out) {
  for (Index q = 0; q < width; ++q) {
    out[q] = in[q] + in[q + width];
    out[q + width] = in[q] - in[q + width];
  }
}

}  // namespace

Fft::Fft(Index n) : n_(n), cosine_(n), sine_(n), work_(4 * batch * n) {
  for (Index k = 0; k < n; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    cosine_.get()[k] = std::cos(angle);
    sine_.get()[k] = std::sin(angle);
  }
}

// The first half of the work array holds the lines; the result is in either half.
Fft::Split Fft::transform_batch(Index width) {
  const Index size = batch * n_;
  Split from{work_.get(), work_.get() + size};
  Split to{work_.get() + 2 * size, work_.get() + 3 * size};
  Index length = n_;  // of the transforms that are left
  for (; length >= 4; length /= 4) {
    const Index step = n_ / length;
    const Index apart = width * step * (length / 4);
    for (Index p = 0; p < length / 4; ++p) {
      Root w[3];
      for (Index m = 0; m < 3; ++m) {
        const Index at = (m + 1) * p * step;
        w[m] = {cosine_.get()[at], sine_.get()[at]};
      }
      const Index in = width * step * p;
      butterfly(from.re + in, from.im + in, apart, to.re + 4 * in, to.im + 4 * in, width * step, w);
    }
    std::swap(from, to);
  }
  if (length == 2) {
    add_and_subtract(from.re, width * n_ / 2, to.re);
    add_and_subtract(from.im, width * n_ / 2, to.im);
    std::swap(from, to);
  }
  return from;
}

// With real and imaginary parts exchanged before and after, forward is backward.
void Fft::transform(Direction direction, double* values, const Lines& lines) {
  const bool forward = direction == Direction::forward;
  double* re = work_.get();
  double* im = work_.get() + batch * n_;
  if (!forward) std::swap(re, im);
  for (Index first = 0; first < lines.count; first += batch) {
    const Index width = std::min(batch, lines.count - first);
    double* block = values + 2 * first * lines.apart;
    load(block, lines, n_, width, re, im);
    const Split result = transform_batch(width);
    store(forward ? result.re : result.im, forward ? result.im : result.re, n_, width, lines,
          block);
  }
}

}  // namespace npb
