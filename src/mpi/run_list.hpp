// SPDX-License-Identifier: BSD-3-Clause
//
// Runs of bytes while they are collected: neighbours are joined, and there may only be so many.
// Pure. Threads: values. Failure: full() is true from the first run on that had no place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mpi/byte_runs.hpp"

namespace perdure {

class RunList {
 public:
  static constexpr std::size_t runs_max = std::size_t{1} << 24;

  void add(std::int64_t offset, std::int64_t bytes) {
    if (bytes <= 0) return;
    if (!runs_.empty() && runs_.back().offset + runs_.back().bytes == offset) {
      runs_.back().bytes += bytes;
    } else if (runs_.size() == runs_max) {
      full_ = true;
    } else {
      runs_.push_back({offset, bytes});
    }
  }

  // `count` items of a type, the first at `offset`.
  void add_items(const DatatypeMap& item, std::int64_t offset, std::int64_t count) {
    if (item.runs.empty() || count <= 0) return;
    const ByteRun& first = item.runs.front();
    if (item.runs.size() == 1 && first.bytes == item.extent_bytes) {
      add(offset + first.offset, count * first.bytes);
      return;
    }
    for (std::int64_t i = 0; i < count && !full_; ++i) {
      for (const ByteRun& run : item.runs)
        add(offset + i * item.extent_bytes + run.offset, run.bytes);
    }
  }

  bool full() const { return full_; }
  std::vector<ByteRun> take() { return std::move(runs_); }

 private:
  std::vector<ByteRun> runs_;
  bool full_ = false;
};

}  // namespace perdure
