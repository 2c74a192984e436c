// SPDX-License-Identifier: BSD-3-Clause
#include "pool/scalar_type.hpp"

#include <array>

namespace perdure {
namespace {

struct KnownType {
  const char* name;
  std::size_t bytes;
  bool is_integer;
};

constexpr std::array<KnownType, 15> known_types{{
    {"", 1, false},
    {"byte", 1, false},
    {"int32", 4, true},
    {"int64", 8, true},
    {"float32", 4, false},
    {"float64", 8, false},
    {"complex128", 16, false},
    {"uint32", 4, true},
    {"uint64", 8, true},
    {"bool", 1, false},
    {"text", 1, false},
    {"int8", 1, true},
    {"int16", 2, true},
    {"uint16", 2, true},
    {"complex64", 8, false},
}};

const KnownType& known(ScalarType type) {
  return known_types[static_cast<std::size_t>(type)];
}

}  // namespace

ScalarType known_scalar_type(std::uint32_t number) {
  return number < known_types.size() ? static_cast<ScalarType>(number) : ScalarType::none;
}

const char* type_name(ScalarType type) {
  return known(type).name;
}

std::size_t element_bytes(ScalarType type) {
  return known(type).bytes;
}

bool is_alike(ScalarType one, ScalarType other) {
  if (one == ScalarType::none || other == ScalarType::none || one == other) return true;
  return known(one).is_integer && known(other).is_integer;
}

}  // namespace perdure
