// SPDX-License-Identifier: BSD-3-Clause
//
// Disk state: vectors in DRAM, and checkpoint files.
#pragma once

#include <string>
#include <vector>

#include "job/checkpoint_files.hpp"
#include "job/rehearsed_kill.hpp"
#include "memory_state.hpp"

namespace hpccg {

class DiskState final : public MemoryState {
 public:
  DiskState(const Grid& grid, const std::string& directory);

  std::uint64_t restore() override;
  void commit() override;
  std::uint64_t committed_bytes() const override { return committed_bytes_; }

 private:
  std::vector<job::CheckpointFiles::Piece> pieces();

  Grid grid_;
  job::CheckpointFiles files_;
  job::RehearsedKill kill_;
  std::uint64_t version_ = 0;
  std::uint64_t committed_bytes_ = 0;
};

}  // namespace hpccg
