// SPDX-License-Identifier: BSD-3-Clause
//
// Exposure: an MPI window whose memory is part of every rank's pool file.
//
// MPI_Win_create on mapped memory would lose the fast path that MPI libraries have between ranks of
// a node. So where all ranks share a node the window is made with MPI_Win_allocate_shared, and each
// rank maps the pages of every rank's pool file over the memory that MPI made for it: what MPI
// stores to a neighbour's memory are stores to the neighbour's pool. MPI's memory need not begin at
// a page; what is skipped (first_byte) is added to each displacement. Otherwise, and where MPI's
// memory can't be covered, the window is made with MPI_Win_create.
//
// Invariants
//   - made: all ranks of the window agree on `shared`, and hold the same targets.
//   - Memory of MPI that was covered is covered again with empty memory before MPI takes it back.
//
// Threads: translate() and address() may be called from any. Failure: expose() is collective, and
// fails on all ranks or on none.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "mpi/mpi_group.hpp"
#include "pmem/shared_view.hpp"

namespace perdure {

// The part of this rank's pool file to expose: copies of `copy_bytes` bytes, `stride` apart.
struct ExposedPart {
  std::uint64_t offset = 0;  // of the first copy in the file, a multiple of the page
  std::uint64_t copy_bytes = 0;
  std::uint64_t stride = 0;
  std::uint32_t copies = 1;
  std::uint64_t unit_bytes = 1;  // of the user's displacements

  std::uint64_t bytes() const { return copy_bytes == 0 ? 0 : (copies - 1) * stride + copy_bytes; }
};

// A cache line of its own: operations look it up.
struct alignas(64) ExposedTarget {
  std::uint64_t first_byte = 0;  // of copy 0 in the real window
  std::uint64_t stride = 0;
  std::uint64_t unit_bytes = 1;
  std::uint64_t bytes = 0;  // of all copies
  std::uint64_t copy_bytes = 0;
  std::byte* view = nullptr;  // copy 0 in this process; null: on another node, or empty
};

struct Exposure {
  bool made = false;
  bool shared = false;
  MPI_Win window{};
  std::uint32_t rank = 0;
  std::vector<ExposedTarget> targets;

  MPI_Aint translate(std::size_t target, MPI_Aint displacement, std::uint32_t copy) const {
    const ExposedTarget& at = targets[target];
    return static_cast<MPI_Aint>(at.first_byte + copy * at.stride) +
           displacement * static_cast<MPI_Aint>(at.unit_bytes);
  }
  std::byte* address(std::uint32_t target, std::uint32_t copy) const {
    const ExposedTarget& at = targets[target];
    return at.view == nullptr ? nullptr : at.view + copy * at.stride;
  }
};

// What all exposures of a pool have in common.
struct ExposedPool {
  std::string directory;
  DeviceFile file;  // this rank's
  FileIdentity identity;
  bool one_node = false;  // all ranks are on it
  bool changing = false;  // the files have their names of before 6 of pool/rank_change.hpp
};
// Collective over the group: once for a pool.
Result<ExposedPool> look_at_pool(MpiGroup& group, std::string directory, const DeviceFile& file);

// Collective over the group.
Result<Exposure> expose(MpiGroup& group, const ExposedPool& pool, const ExposedPart& part,
                        MPI_Info info);

// Collective: frees the window.
int withdraw(Exposure& exposure);

}  // namespace perdure
