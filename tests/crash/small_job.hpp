// SPDX-License-Identifier: BSD-3-Clause
//
// Small job: two arrays and two scalars on a small pool, whose contents are a function of the
// version, for crash sweeps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"
#include "sweep.hpp"

namespace perdure {

// What a version holds, kept apart from the pool.
struct JobState {
  std::vector<std::uint64_t> a;
  std::vector<std::uint64_t> b;
  std::uint64_t iteration = 0;
  std::array<std::uint64_t, 3> random{};

  bool operator==(const JobState&) const = default;
};

constexpr std::size_t a_words = 5;   // not a whole number of lines or blocks
constexpr std::size_t b_words = 12;  // of which log mode changes a few each version
constexpr std::size_t own_words = 20;
constexpr Geometry small_geometry{1024, 64, 16};

// The state after version v of rank r: a changes everywhere, b in two words. Attempts at the same
// version differ in their contents.
JobState next_state(const JobState& before, std::uint64_t version, std::uint32_t rank,
                    std::uint64_t attempt);

class SmallJob {
 public:
  // Formats the device if it is empty.
  SmallJob(std::unique_ptr<Device> device, Group& group, const SweepOptions& options);

  // Opens arrays and scalars, restarts; collective.
  Result<std::uint64_t> start();
  // Writes `state` as the application does in this mode; then commits; collective.
  Result<std::uint64_t> commit(const JobState& state);
  // Makes another collective call, where a commit is expected of it.
  Status stray() { return pool_->restore(1); }
  // What the application sees as the committed state.
  JobState consistent() const;

 private:
  Status open_arrays();
  void write(const JobState& state);

  const SweepOptions& options_;
  const bool first_;  // of the ranks
  std::unique_ptr<Pool> pool_;
  Status attached_;
  VersionedArray* a_ = nullptr;
  VersionedArray* b_ = nullptr;
  VersionedArray* own_ = nullptr;  // that only the first rank has; null: there is none
  std::vector<std::uint64_t> a_buffer_;
  std::vector<std::uint64_t> b_buffer_;
  std::vector<std::uint64_t> own_buffer_;
  std::uint64_t iteration_ = 0;
  std::array<std::uint64_t, 3> random_{};
};

}  // namespace perdure
