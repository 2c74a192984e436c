// SPDX-License-Identifier: BSD-3-Clause
//
// Disk state: shares in DRAM, and checkpoint files. They are checked against the graph; files of
// another one are an error on all ranks.
#pragma once

#include <vector>

#include "job/checkpoint_files.hpp"
#include "job/rehearsed_kill.hpp"
#include "memory_state.hpp"

namespace pagerank {

class DiskState final : public MemoryState {
 public:
  DiskState(const Graph& graph, const Options& options);

  std::uint64_t restore() override;
  void commit() override;
  std::uint64_t committed_bytes() const override { return committed_bytes_; }

 private:
  std::vector<job::CheckpointFiles::Piece> pieces();

  job::CheckpointFiles files_;
  job::RehearsedKill kill_;
  std::uint64_t version_ = 0;
  std::uint64_t committed_bytes_ = 0;
};

}  // namespace pagerank
