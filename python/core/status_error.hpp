// SPDX-License-Identifier: BSD-3-Clause
//
// Status in Python: a Result that failed is raised as perdure._core.Error with its sentence.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/status.hpp"

namespace perdure::python {

// A message may quote bytes of a file: those that are no UTF-8, of which Python would make no text
// at all, are escaped.
inline std::string as_utf8(const std::string& message) {
  std::string text;
  for (std::size_t at = 0; at < message.size();) {
    const auto first = static_cast<unsigned char>(message[at]);
    const std::size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    bool valid = first < 0x80 || (first >= 0xc2 && first < 0xf5);
    for (std::size_t i = 1; i <= more; ++i) {
      valid = valid && at + i < message.size() && (message[at + i] & 0xc0) == 0x80;
    }
    const auto second = static_cast<unsigned char>(valid && more > 0 ? message[at + 1] : 0);
    valid = valid && !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f) &&
            !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
    if (valid) {
      text.append(message, at, more + 1);
      at += more + 1;
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", first);
    text += escaped;
    ++at;
  }
  return text;
}

class StatusError : public std::runtime_error {
 public:
  explicit StatusError(const Status& status) : std::runtime_error(as_utf8(status.message())) {}
};

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) throw StatusError(result.status());
  return result.take();
}

inline void raise_on_failure(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}

}  // namespace perdure::python
