// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose number of ranks changes from run to run. Its ranks are threads, its pool is a
// directory, and what its arrays hold is a function of the version alone, whoever has it:
//
//   cells    a global array of two dimensions, of which each rank has a box with halos
//   rows     a list over all ranks, of rows of three elements
//   table    the same on all ranks
//   hand     read by hand: what rank 0 says it is, and the version on the others
//   step     a scalar, the version
//
// The oracle is this function: nothing is kept aside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/box_cells.hpp"
#include "pool/pool_directory.hpp"

namespace perdure {

// Memory of a device, in which a rank has its buffers.
class RankMemory {
 public:
  RankMemory() = default;
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;
  virtual ~RankMemory() = default;
  virtual const DeviceFunctions* functions() const { return nullptr; }
  virtual std::byte* allocate(std::uint64_t bytes) = 0;
  virtual void write(std::byte* to, const std::vector<std::int64_t>& from) = 0;
  virtual std::vector<std::int64_t> read(const std::byte* from, std::uint64_t count) = 0;
};

struct JobRun {
  std::string directory;  // of the pool; with nodes what NODE/pool is below
  std::uint32_t ranks = 1;
  std::uint64_t seed = 1;  // of boxes, rows and modes of this run
  ArrayMode mode = ArrayMode::copy;
  bool checksums = true;
  std::uint32_t keep = 0;
  bool late = false;  // ranks come to each exchange at other times
  // A cell's value depends on the rank that has it as well; then `before` says who had it.
  bool cells_of_ranks = false;
  std::optional<std::vector<CellBox>> before = std::nullopt;
  std::string levels = "";                // as PERDURE_LEVELS; empty: none
  std::vector<std::uint32_t> nodes = {};  // of each rank; empty: all see one directory
  bool one_directory = false;             // of all nodes
  bool any_ranks = true;
  // Arrays are opened on all ranks together, after the restart, as windows are.
  bool one_by_one = false;
  std::uint64_t table_elements = 30;
  // Of a rank; null: buffers are the pool's own, in the host's memory.
  std::function<std::unique_ptr<RankMemory>(std::uint32_t rank)> memory = nullptr;
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)> around = nullptr;
  std::function<void()> before_commit = nullptr;  // on rank 0, after the restart was judged
};

struct JobResult {
  Status opened;               // the first that failed of the ranks, at open or restart
  std::uint64_t restored = 0;  // version
  std::uint64_t newest = 0;
  std::vector<std::string> wrong;  // what was not as it should be
};

constexpr std::uint64_t job_rows = 40;

// Where the pool is on a node.
std::string pool_on(const JobRun& run, std::uint32_t node);

// The boxes of the run's ranks.
std::vector<CellBox> boxes_of_run(std::uint64_t seed, std::uint32_t ranks);
// Opens the pool, judges what comes back, and makes `commits` versions.
JobResult run_job(const JobRun& run, std::uint64_t commits);

}  // namespace perdure
