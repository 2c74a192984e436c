// SPDX-License-Identifier: BSD-3-Clause
//
// Status in Python: a Result that failed is raised as perdure._core.Error with its sentence.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/status.hpp"

namespace perdure::python {

class StatusError : public std::runtime_error {
 public:
  explicit StatusError(const Status& status) : std::runtime_error(status.message()) {}
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
