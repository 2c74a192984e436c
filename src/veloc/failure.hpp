// SPDX-License-Identifier: BSD-3-Clause
//
// What a call of the VELOC interface fails with: a sentence that names what was seen and the
// remedy. veloc_c.cpp makes VELOC_FAILURE of it, as of perdure::Error.
#pragma once

#include <stdexcept>

#include "base/status.hpp"

namespace perdure_veloc {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void need(const perdure::Status& status) {
  if (!status.ok()) throw Failure(status.message());
}

template <typename T>
T need(perdure::Result<T> result) {
  need(result.status());
  return result.take();
}

}  // namespace perdure_veloc
