// SPDX-License-Identifier: BSD-3-Clause
//
// Element: what the bytes of a datatype mean, as far as Perdure computes with them. No MPI in here.
#pragma once

#include <cstdint>

namespace perdure {

enum class Element : std::uint8_t {
  none,   // a type without bytes
  other,  // several kinds, or one that Perdure does not compute with
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  long_double,
  complex32,  // of two float32
  complex64,
  byte,
  boolean,  // of one byte
};

}  // namespace perdure
