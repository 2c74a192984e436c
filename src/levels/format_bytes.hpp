// SPDX-License-Identifier: BSD-3-Clause
//
// Structs of a format one after the other, in a string. Pure.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace perdure {

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes from the beginning of `rest`; false if it is too short.
template <typename T>
bool take(std::string_view& rest, T& value) {
  if (rest.size() < sizeof value) return false;
  std::memcpy(&value, rest.data(), sizeof value);
  rest.remove_prefix(sizeof value);
  return true;
}

}  // namespace perdure
