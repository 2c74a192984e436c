// SPDX-License-Identifier: BSD-3-Clause
//
// Fft: discrete Fourier transforms of lines of complex numbers, in place, by Stockham's algorithm
// with radix 4 (Van Loan, Computational Frameworks for the FFT, 1992, section 1.7). Some lines are
// transformed side by side, so that all inner loops are contiguous.
//
// A complex number is two doubles. Neither direction divides by the length. One thread at a time.
#pragma once

#include "npb/array.hpp"

namespace npb {

enum class Direction { forward, backward };  // exp(-2 pi i j k / n), exp(+2 pi i j k / n)

// Lines in an array, in complex numbers.
struct Lines {
  Index count;   // of lines
  Index apart;   // from a line to the next
  Index stride;  // from an element of a line to the next
};

class Fft {
 public:
  explicit Fft(Index n);  // a power of two, the length of each line

  void transform(Direction direction, double* values, const Lines& lines);

 private:
  static constexpr Index batch = 16;  // lines side by side

  struct Split {
    double *re, *im;
  };

  Split transform_batch(Index width);

  Index n_;
  Array<double> cosine_, sine_;  // of -2 pi k / n
  Array<double> work_;
};

}  // namespace npb
