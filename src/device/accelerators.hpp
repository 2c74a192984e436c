// SPDX-License-Identifier: BSD-3-Clause
//
// Accelerators: those that a pool's arrays are on, with what is the pool's alone: the program's
// stream, and which of the pool's mapping is registered.
//
// A pool whose arrays are in the host's memory has none, and asks the driver nothing but, where the
// program has loaded it, what a buffer is.
//
// Threads: as the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "device/accelerator.hpp"
#include "device/host_ring.hpp"
#include "device/registered_ranges.hpp"

namespace perdure {

enum class MemoryKind : std::uint8_t {
  host,     // nothing that an accelerator's driver knows
  pinned,   // the host's, registered with a driver: devices store to it unseen
  managed,  // moves between the host and the device
  device,   // the processor can't reach it
};

// What the driver says of the first byte.
MemoryKind kind_of(const std::byte* buffer);

// Where that was MemoryKind::host, and the processor is to read it: whether the driver has said so,
// and not failed, as it does when the program's context is broken.
Status check_of_host(const std::byte* buffer);

class Accelerators {
 public:
  Accelerators();
  ~Accelerators();
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  // Whose memory [buffer, buffer + bytes) is; null: the host's. Code::invalid_argument if it is an
  // accelerator's, and ends sooner. `kind`: of the memory, unless it is null.
  Result<Accelerator*> of(const std::byte* buffer, std::uint64_t bytes, MemoryKind* kind = nullptr);

  // Of memory that these functions of the program reach.
  Accelerator* by(const DeviceFunctions& functions);

  bool any() const { return !known_.empty(); }

  // nullopt: none, from now on.
  void set_stream(std::optional<ProgramStream> stream) { stream_ = stream; }
  const ProgramStream* stream() const { return stream_ ? &*stream_ : nullptr; }
  RegisteredRanges& registered() { return registered_; }
  // Made when it is needed first, for pieces of whole units, which are the same each time.
  Result<HostRing*> ring_of(Accelerator& accelerator, std::uint64_t unit_bytes);

 private:
  struct Known {
    std::unique_ptr<Accelerator> accelerator;
    DriverHandle named = nullptr;    // the context that the driver names; null: none
    std::unique_ptr<HostRing> ring;  // goes before the accelerator
  };
  std::vector<Known> known_;
  RegisteredRanges registered_;  // device.R1: goes before these
  std::optional<ProgramStream> stream_;
};

}  // namespace perdure
