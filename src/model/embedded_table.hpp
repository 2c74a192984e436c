// SPDX-License-Identifier: BSD-3-Clause
//
// data/devices.json as it was when this library was built.
#pragma once

namespace perdure {

extern const char* const embedded_device_table;

}  // namespace perdure
