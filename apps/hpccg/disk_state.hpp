// SPDX-License-Identifier: BSD-3-Clause
//
// Disk state: the usual application-level checkpoint. Vectors in DRAM; each commit writes a new
// file per rank, makes it durable and renames it over the older of two.
//
// A version counts when all ranks have it: commit ends with a barrier, restore takes the smallest
// of the ranks' newest versions and deletes what lies beyond before anybody goes on
// (tests/spin/commit.pml says why both are needed).
#pragma once

#include <string>

#include "job/rehearsed_kill.hpp"
#include "job/stopwatch.hpp"
#include "memory_state.hpp"

namespace hpccg {

class DiskState final : public MemoryState {
 public:
  DiskState(const Grid& grid, const std::string& directory);

  std::uint64_t restore() override;
  void commit() override;
  std::uint64_t committed_bytes() const override { return committed_bytes_; }

 private:
  struct Header {
    std::uint64_t magic, version, iteration;
    double rtrans;
    std::uint32_t nx, ny, nz, rank, ranks, unused;
  };

  Header header_of(std::uint64_t version) const;
  std::string path_of(std::uint64_t version) const;
  std::uint64_t newest_version() const;
  bool read_header(std::uint64_t parity, Header& header) const;
  void read_version(std::uint64_t version);
  void write_version(std::uint64_t version);

  Grid grid_;
  std::string directory_;
  job::RehearsedKill kill_;
  std::uint64_t version_ = 0;
  std::uint64_t committed_bytes_ = 0;
};

}  // namespace hpccg
