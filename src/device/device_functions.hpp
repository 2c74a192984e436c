// SPDX-License-Identifier: BSD-3-Clause
//
// Device functions: how the program reaches memory that no driver known here serves. perdure.h says
// what each does (perdure_device); only `copy` must be there.
#pragma once

#include <cstddef>

namespace perdure {

enum class CopyDirection : int { to_host = 1, to_device = 2, within = 3 };

struct DeviceFunctions {
  void* context = nullptr;
  int (*copy)(void* context, void* to, const void* from, std::size_t bytes,
              int direction) = nullptr;
  int (*follow)(void* context) = nullptr;
  int (*hold)(void* context) = nullptr;
  int (*wait)(void* context) = nullptr;
  void* (*allocate)(void* context, void* memory, std::size_t bytes) = nullptr;

  bool operator==(const DeviceFunctions&) const = default;
};

}  // namespace perdure
