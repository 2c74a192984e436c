// SPDX-License-Identifier: BSD-3-Clause
//
// Twin writer: something outside `pool` that brings a twin array's contents into its working copy,
// and that knows what of it is durable and whether it changed at all (in-place versioning, ipv/).
//
// Threads: called by the thread that commits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace perdure {

class TwinWriter {
 public:
  TwinWriter() = default;
  TwinWriter(const TwinWriter&) = delete;
  TwinWriter& operator=(const TwinWriter&) = delete;
  virtual ~TwinWriter() = default;

  // The contents differ from the committed copy. If not, the next version names that copy, and
  // save() is not called. Does not change between a commit's beginning and its end.
  virtual bool changed() const = 0;
  // Brings the working copy up to date (versioned_array.hpp, pool.A2) except the caller's fence;
  // other threads that took part have fenced. Returns bytes written.
  virtual Result<std::uint64_t> save() = 0;
  // Memory of the program's, of the array's size, where contents from elsewhere go: it has them
  // saved with the first version.
  virtual std::byte* memory() const = 0;
};

}  // namespace perdure
