// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA driver: the calls of NVIDIA's driver that are used here, found at run time in the library
// that the program has loaded; or those of AMD's in their places (hip_driver.hpp).
//
//   device.C1  The library is looked for among those that the process has loaded, and never loaded
//       here: a program without a GPU gets no library and makes no call. Nothing of CUDA is needed
//       to build.
//   device.C2  A result that is not 0 becomes a Status with the driver's own name for it. A context
//       that a kernel of the program has broken fails every later call, so it can't be overlooked.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "device/program_stream.hpp"

namespace perdure {

// What the driver calls CUdeviceptr.
using DeviceAddress = std::uint64_t;

// Attributes of a pointer, of cuda.h; HIP has the same.
inline constexpr int context_attribute = 1;
inline constexpr int memory_type_attribute = 2;
inline constexpr int allocation_attribute = 7;  // each allocation of a process has another number
inline constexpr int ordinal_attribute = 9;
inline constexpr int range_start_attribute = 11;
inline constexpr int range_size_attribute = 12;

// And results.
inline constexpr int not_initialised = 3;
inline constexpr int deinitialised = 4;

struct CudaDriver {
  int (*pointer_get_attribute)(void*, int, DeviceAddress) = nullptr;
  int (*device_get_attribute)(int*, int, int) = nullptr;
  int (*primary_ctx_retain)(DriverHandle*, int) = nullptr;
  int (*ctx_push)(DriverHandle) = nullptr;
  int (*ctx_pop)(DriverHandle*) = nullptr;
  int (*ctx_synchronize)() = nullptr;
  int (*ctx_stream_priorities)(int*, int*) = nullptr;
  int (*mem_alloc)(DeviceAddress*, std::size_t) = nullptr;
  int (*mem_free)(DeviceAddress) = nullptr;
  int (*host_register)(void*, std::size_t, unsigned) = nullptr;
  int (*host_unregister)(void*) = nullptr;
  int (*copy_to_host)(void*, DeviceAddress, std::size_t, DriverHandle) = nullptr;
  int (*copy_from_host)(DeviceAddress, const void*, std::size_t, DriverHandle) = nullptr;
  int (*copy_within)(DeviceAddress, DeviceAddress, std::size_t, DriverHandle) = nullptr;
  int (*set_bytes)(DeviceAddress, unsigned char, std::size_t, DriverHandle) = nullptr;
  int (*stream_create)(DriverHandle*, unsigned, int) = nullptr;
  int (*stream_destroy)(DriverHandle) = nullptr;
  int (*stream_wait_event)(DriverHandle, DriverHandle, unsigned) = nullptr;
  int (*stream_synchronize)(DriverHandle) = nullptr;
  int (*stream_is_capturing)(DriverHandle, int*) = nullptr;
  int (*event_create)(DriverHandle*, unsigned) = nullptr;
  int (*event_destroy)(DriverHandle) = nullptr;
  int (*event_record)(DriverHandle, DriverHandle) = nullptr;
  int (*event_synchronize)(DriverHandle) = nullptr;
  int (*module_load)(DriverHandle*, const void*) = nullptr;
  int (*module_function)(DriverHandle*, DriverHandle, const char*) = nullptr;
  int (*launch)(DriverHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                DriverHandle, void**, void**) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int (*mem_room)(std::size_t*, std::size_t*) = nullptr;  // may be missing
  int (*module_unload)(DriverHandle) = nullptr;           // may be missing
  int (*primary_ctx_release)(int) = nullptr;              // may be missing
  int (*exchange_capture_mode)(int*) = nullptr;           // may be missing

  // Null if the process has not loaded it (device.C1), or if it lacks a call. Costs nothing while
  // no other library was loaded.
  static const CudaDriver* find(DriverKind kind = DriverKind::cuda);
  // The program has initialised it, and has not ended it; whichever calls it has. HIP's, which
  // initialises itself, was loaded.
  static bool is_in_use(DriverKind kind = DriverKind::cuda);

  // Each call that it must have was found.
  bool complete = false;
  DriverKind kind = DriverKind::cuda;

  // device.C2; `call` is the driver's name of it.
  Status status_of(const char* call, int result) const;
};

}  // namespace perdure
