// SPDX-License-Identifier: BSD-3-Clause
//
// Progress that work without Python's lock reports to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "status_error.hpp"

namespace perdure::python {

using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// What work(progress) gives, a Result, while other threads have the lock. `progress` calls
// callback(done, total), whose False ends the work; it is empty for None. An exception in the
// callback (Ctrl-C) ends the work too, and is raised after that.
template <typename Work>
auto watched(const nanobind::object& callback, const Work& work) {
  std::unique_ptr<nanobind::python_error> raised;
  Progress progress;
  if (!callback.is_none()) {
    progress = [&](std::uint64_t done, std::uint64_t total) {
      const nanobind::gil_scoped_acquire locked;
      try {
        return nanobind::cast<bool>(callback(done, total));
      } catch (nanobind::python_error& error) {
        raised = std::make_unique<nanobind::python_error>(error);
        return false;
      }
    };
  }
  auto result = [&] {
    const nanobind::gil_scoped_release unlocked;
    return work(progress);
  }();
  if (raised) throw nanobind::python_error(*raised);
  return value_or_raise(std::move(result));
}

}  // namespace perdure::python
