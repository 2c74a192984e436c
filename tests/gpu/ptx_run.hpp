// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a kernel of a PTX module: warps of 32 lanes, each with registers of its own. Lanes that are
// at the same instruction run it together; where they part, those that are the least far go on,
// and a shuffle waits until all lanes of its warp have come, as devices since Volta have it. Warps
// run one after the other, in an order that is drawn: nothing may depend on it.
//
// Threads: one a run; memory is the caller's to share. Failure: PtxError, or what Memory throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ptx_text.hpp"

namespace fake {

// The addresses that a kernel sees.
class Memory {
 public:
  virtual ~Memory() = default;
  // Where these bytes are, if they are in one piece that may be accessed at its own speed, and be
  // stored to where that is asked for; else nullptr.
  virtual std::byte* place(std::uint64_t address, std::size_t size_bytes, bool to_store) = 0;
};

struct Launch {
  std::uint32_t blocks;
  std::uint32_t threads;  // of a block
  std::span<const std::uint64_t> parameters;
  std::uint64_t seed;
};

void run_kernel(const PtxModule& module, const PtxKernel& kernel, const Launch& launch,
                Memory& memory);

// An address that a lane may not access, or that is no multiple of what it accesses there.
class AccessError : public PtxError {
 public:
  AccessError(std::uint32_t line, const std::string& sentence, bool misaligned_access)
      : PtxError(line, sentence), is_misaligned(misaligned_access) {}
  bool is_misaligned;
};

}  // namespace fake
