// SPDX-License-Identifier: BSD-3-Clause
//
// Disk state: the usual application-level checkpoint. Shares in DRAM; each commit writes a new file
// per rank with C file I/O, makes it durable and renames it over the older of two.
//
// A version counts when all ranks have it: commit ends with a barrier, restore takes the smallest
// of the ranks' newest versions and deletes what lies beyond before anybody goes on
// (tests/spin/commit.pml says why both are needed). What is read is checked against the graph;
// files of another one are an error on all ranks.
#pragma once

#include <string>

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
  struct Header {
    std::uint64_t magic, version, problem, values;
    Scalars scalars;
  };

  Header header_of(std::uint64_t version) const;
  std::string path_of(std::uint64_t version) const;
  std::uint64_t newest_version() const;
  void read_version(std::uint64_t version);
  void write_version(std::uint64_t version);
  void sync_directory() const;

  std::string directory_;
  std::uint64_t problem_;  // the graph, its partition and the damping
  job::RehearsedKill kill_;
  std::uint64_t version_ = 0;
  std::uint64_t committed_bytes_ = 0;
};

}  // namespace pagerank
