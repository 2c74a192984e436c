// SPDX-License-Identifier: BSD-3-Clause
//
// Progress that work without Python's lock reports to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace perdure::python {

// callback(done, total), whose False ends the work; empty for None. An exception in it (Ctrl-C)
// ends the work too, and is raised by raise_again() after that.
inline std::function<bool(std::uint64_t, std::uint64_t)> watched(nanobind::object callback,
                                                                 nanobind::python_error*& raised) {
  if (callback.is_none()) return {};
  return [callback, &raised](std::uint64_t done, std::uint64_t total) {
    const nanobind::gil_scoped_acquire locked;
    try {
      return nanobind::cast<bool>(callback(done, total));
    } catch (nanobind::python_error& error) {
      raised = new nanobind::python_error(error);
      return false;
    }
  };
}

inline void raise_again(nanobind::python_error* raised) {
  if (raised == nullptr) return;
  const std::unique_ptr<nanobind::python_error> owned(raised);
  throw nanobind::python_error(*owned);
}

}  // namespace perdure::python
