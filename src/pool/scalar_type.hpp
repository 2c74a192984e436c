// SPDX-License-Identifier: BSD-3-Clause
//
// What a scalar is made of, as the program says: for people who look at the pool, and so that a
// number is not restored as one of another kind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

// The numbers are perdure.h's.
enum class ScalarType : std::uint32_t {
  none = 0,
  byte = 1,
  int32 = 2,
  int64 = 3,
  float32 = 4,
  float64 = 5,
  complex128 = 6,
  uint32 = 7,
  uint64 = 8,
  boolean = 9,
  text = 10,
  int8 = 11,
  int16 = 12,
  uint16 = 13,
  complex64 = 14,
};

// none: no such type is known here.
ScalarType known_scalar_type(std::uint32_t number);
const char* type_name(ScalarType type);
// Of one of them; 1 where there is no type.
std::size_t element_bytes(ScalarType type);
// Where either is not known, or both are integers, a scalar of one can be restored as the other.
bool is_alike(ScalarType one, ScalarType other);

}  // namespace perdure
