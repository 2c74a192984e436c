// SPDX-License-Identifier: BSD-3-Clause
//
// Store: the checkpoints of one name, in a pool of its own, scratch/NAME.
//
// A program may have many small regions, which come, go and change their size. So a checkpoint is a
// stream of bytes (checkpoint_format.hpp) in one array in mode twin, which is resized on each rank
// as its regions need. The stream is stored past the cache, once, and the commit has nothing to
// copy. The program's own numbers of its versions are in the pool's scalar.
//
// Threads: one. Failure: Failure, or perdure::Error of the pool; collective calls then fail on all
// ranks, and the newest version stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perdure/perdure.hpp"
#include "veloc/checkpoint_format.hpp"
#include "veloc/config.hpp"
#include "veloc/ranks.hpp"

namespace perdure_veloc {

// A region of memory, or a file, in a checkpoint.
struct Region {
  int id = 0;
  std::string file = {};  // its name; empty: a region of memory
  std::uint64_t bytes = 0;
  std::uint64_t at = 0;
};

class Store {
 public:
  // [collective] Opens the pool, or makes it, and takes its newest version.
  Store(const Ranks& ranks, const Config& config, const std::string& name);

  const std::string& path() const { return path_; }

  // The highest label below `limit` (0: none) that the pool keeps.
  std::optional<int> newest_below(int limit) const;
  // [collective] Reads that version from now on, and the next one is made from it.
  void go_to(int label);
  const std::vector<Region>& regions() const { return regions_; }
  void read(const Region& region, void* memory) const {
    copy_out(region.at, static_cast<std::byte*>(memory), region.bytes);
  }

  // A new version begins, with room for regions of these sizes on this rank.
  void begin(const std::vector<std::uint64_t>& region_bytes);
  // Room for more of them.
  void reserve(const std::vector<std::uint64_t>& region_bytes);
  // Regions that were not reserved for do not fit: Failure.
  void write(Region region, const void* memory);
  // [collective] What was written is a version, durable on all ranks, and the one that is read.
  void commit(int label);
  // [collective] Until versions that are on their way to other levels have arrived there.
  void wait() { pool_->levels_wait(); }
  // Whether they have, as far as this rank knows.
  bool has_arrived() const { return pool_->status().levels_under_way == 0; }

 private:
  void open_pool(const Ranks& ranks, const Config& config, const std::string& name);
  void open_stream();
  void check_layout() const;
  void settle_labels(std::uint64_t version);
  void read_table();
  std::vector<std::byte> table() const;
  void resize(std::uint64_t bytes);
  void append(const void* bytes, std::uint64_t count);
  void copy_out(std::uint64_t at, std::byte* to, std::uint64_t count) const;
  LayoutFormat with_label(int label) const;

  const Ranks& ranks_;
  std::string path_;
  LayoutFormat layout_{};   // a scalar of the pool, which comes last: it is closed first
  std::int64_t shown_ = 0;  // the newest label, for `perdure run` and `perdure pool ls`
  std::vector<LabelFormat> labels_;
  std::vector<Region> regions_;  // of the version that is read
  std::vector<Region> written_;  // of the one that is being made
  std::uint64_t end_ = 0;        // of what was written of it
  std::uint64_t head_ = 0;       // the version that is read; 0: there is none
  bool resized_ = false;         // since the version that is read
  std::optional<perdure::Pool> pool_;
  std::optional<perdure::Array<std::byte>> stream_;
};

}  // namespace perdure_veloc
