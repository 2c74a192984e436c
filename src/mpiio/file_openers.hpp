// SPDX-License-Identifier: BSD-3-Clause
//
// File openers: the ranks that opened a cached file together, and which of those of its node this
// one is.
//
// Invariants
//   mpiio.O1  While the file is open each block of a node's part is one opener's of that node: its
//       shares of a version are the part, once. What all of them write back they begin at different
//       blocks.
//
// Threads: any, after it was made.
#pragma once

#include <cstdint>

#include "cache/part_share.hpp"
#include "mpi/mpi_group.hpp"

namespace perdure {

class FileOpeners {
 public:
  FileOpeners() = default;  // this process alone
  FileOpeners(std::uint32_t ranks, std::uint32_t local_rank, std::uint32_t local_ranks)
      : ranks_(ranks), local_rank_(local_rank), local_ranks_(local_ranks) {}

  bool are_all_of(const MpiGroup& group) const { return group.ranks() == ranks_; }
  bool lead_node() const { return local_rank_ == 0; }
  // Of so many of its part: where this one begins to write back.
  std::uint64_t first_block(std::uint64_t blocks) const {
    return blocks * local_rank_ / local_ranks_;
  }
  PartShare share_of(const CachePart& part, std::uint64_t file_bytes) const {
    return PartShare::of(part, file_bytes, local_rank_, local_ranks_);
  }

 private:
  std::uint32_t ranks_ = 1;
  std::uint32_t local_rank_ = 0;
  std::uint32_t local_ranks_ = 1;
};

}  // namespace perdure
